"""Speed and separation judged: what moved while a person was near, and pictures of it."""
