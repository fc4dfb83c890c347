"""Writes a folder of tests/golden: named arrays in golden.bin, and golden.json, which says where each lies."""
import json
import os

import numpy as np


class GoldenFile:
    def __init__(self):
        self.arrays, self.blob = {}, bytearray()

    def put(self, name, values, dtype):
        """dtype: f32 or i32."""
        raw = np.ascontiguousarray(values, {"f32": np.float32, "i32": np.int32}[dtype])
        self.arrays[name] = {"dtype": dtype, "shape": list(raw.shape), "offset": len(self.blob), "bytes": raw.nbytes}
        self.blob.extend(raw.tobytes())

    def write(self, folder, meta):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "golden.bin"), "wb") as f:
            f.write(self.blob)
        with open(os.path.join(folder, "golden.json"), "w") as f:
            json.dump({"meta": meta, "arrays": self.arrays}, f, indent=1)
            f.write("\n")
