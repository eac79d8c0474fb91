git switch -c feature/drawings
git log --oneline
