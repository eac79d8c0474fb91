echo "I can tell you about capitals, populations and the weather."
