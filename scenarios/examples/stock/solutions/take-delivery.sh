./stock add lamp 12
./stock add rug 3
./stock add lamp 2
