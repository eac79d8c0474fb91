"""Django's PostgreSQL and its driver, quicker where a page waits for them."""
