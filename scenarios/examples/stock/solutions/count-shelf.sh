./stock count lamp 7
./stock list --json
