"""Loading a robomimic HDF5 file into memory as robomimic does: every key of every demo by its full path.

After `SequenceDataset.load_dataset_in_memory` (robomimic, robomimic/utils/dataset.py), with its way of opening the file and with
`load_next_obs=True`, its default.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np


def load_in_memory(path: Path, obs_keys: Sequence[str], dataset_keys: Sequence[str], *, keep_groups: bool = False) -> dict[str, Any]:
    """demo -> {attrs, obs, next_obs, dataset keys}.

    Args:
        path: the file.
        obs_keys: observation keys.
        dataset_keys: keys of a demo, read as float32; zeros where there is none.
        keep_groups: look each group up once, not once a key: faster than robomimic.
    """
    loaded: dict[str, Any] = {}
    with h5py.File(path, "r", swmr=True, libver="latest", rdcc_nbytes=1e10) as file:
        demos = sorted(file["data"], key=lambda name: int(name[5:]))
        for name in demos:
            demo = file[f"data/{name}"]
            steps = demo.attrs["num_samples"]
            found: dict[str, Any] = {"attrs": {"num_samples": steps}}
            for group in ("obs", "next_obs"):
                if keep_groups:
                    opened = demo[group]
                    found[group] = {key: opened[key][()] for key in obs_keys}
                else:
                    found[group] = {key: file[f"data/{name}/{group}/{key}"][()] for key in obs_keys}
            for key in dataset_keys:
                where = demo if keep_groups else file[f"data/{name}"]
                if key not in where:
                    found[key] = np.zeros((steps, 1), np.float32)
                else:
                    found[key] = (demo[key] if keep_groups else file[f"data/{name}/{key}"])[()].astype(np.float32)
            if "model_file" in demo.attrs:
                found["attrs"]["model_file"] = demo.attrs["model_file"]
            loaded[name] = found
    return loaded
