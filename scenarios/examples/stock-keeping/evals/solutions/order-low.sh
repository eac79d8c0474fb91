./stock add vase 1
./stock export --below 5 order.csv
