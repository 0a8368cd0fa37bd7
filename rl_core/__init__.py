"""Learning: contract, data, models, training and one folder a method. Knows no ROS and no simulator."""
