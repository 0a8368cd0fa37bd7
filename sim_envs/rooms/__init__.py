"""A point mass in rooms: the smallest world whose corners are hard to find by chance."""
