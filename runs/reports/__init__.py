"""Write documents for programs and summaries for people. Values in, text out."""
