"""Messages about events: composed from what is stored, sent by workers, retried while the receiver is away."""
