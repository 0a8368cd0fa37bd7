"""What is in view: recognition of parts with few pictures, under shift, and against changed pixels; the baselines beside them."""
