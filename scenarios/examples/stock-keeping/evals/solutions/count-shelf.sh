./stock add lamp 9
./stock count lamp 7
