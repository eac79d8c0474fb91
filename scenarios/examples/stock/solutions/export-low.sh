./stock export --below 5 order.csv
