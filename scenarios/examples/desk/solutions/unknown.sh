echo "A piano is not on the price list."
