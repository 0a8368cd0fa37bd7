"""Four-room mazes that a gripper passes over a table: kinematic, many at once."""
