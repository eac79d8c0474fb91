"""Read-only queries behind the pages. Values come out; each reader says how many queries it makes."""
