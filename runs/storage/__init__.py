"""What is kept in files, what other programs' results bring, what goes after a time, and a copy of it all."""
