./stock add rug 3
./stock list --json
