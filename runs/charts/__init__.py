"""Values in, SVG out: classes without colours, which the page takes from its tokens."""
