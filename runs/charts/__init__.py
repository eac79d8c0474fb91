"""Values in, plain Plotly figures out: dictionaries without colours, which the page takes from its tokens."""
