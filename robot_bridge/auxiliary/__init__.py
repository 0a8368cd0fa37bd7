"""The auxiliary methods: what is in view, whether the input can be trusted, and more. Knows no ROS."""
