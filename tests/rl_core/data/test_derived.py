import numpy as np

from rl_core.data.derived import add_derived


def test_difference_is_object_minus_gripper_for_one_sample_and_for_episodes():
    eef, cube = np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.2, 0.1])
    one = add_derived({"eef_pos": eef, "cube_pos": cube, "joint_pos": np.zeros(7)})
    np.testing.assert_array_equal(one["gripper_to_cube_pos"], cube - eef)
    assert list(one) == ["eef_pos", "cube_pos", "joint_pos", "gripper_to_cube_pos"]
    many = add_derived({"eef_pos": np.stack([eef] * 4), "cube_pos": np.stack([cube] * 4)})
    np.testing.assert_array_equal(many["gripper_to_cube_pos"], np.stack([cube - eef] * 4))


def test_a_stale_difference_is_replaced_and_others_are_left_alone():
    result = add_derived({"gripper_to_cube_pos": np.full(3, 9.0), "eef_pos": np.zeros(3), "cube_pos": np.ones(3)})
    np.testing.assert_array_equal(result["gripper_to_cube_pos"], np.ones(3))
    assert list(add_derived({"cube_pos": np.ones(3)})) == ["cube_pos"]
