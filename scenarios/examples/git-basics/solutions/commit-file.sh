git add plans.txt
git commit -m "Add plans"
