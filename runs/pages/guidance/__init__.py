"""Pages of guidance: versions, two compared, and versions against tool versions."""
