"""What is soaked: two cameras into one detector, and a file into another, all small."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import onnx

from tests.cameras import Proxy, RtspServer, make_h264

FPS = 10
CLIP_S = 20
SIZE = (320, 240)
CAMERAS = {"front": "tcp", "back": "udp"}
# A part that shall be killed for hours must not use up the budget that ends a run.
RESTART = {"max_restarts": 1_000_000, "delay_ms": 50, "max_delay_ms": 1000, "hang_s": 5}


class Scene:
    """The cameras, each a server behind a proxy, and the files of the pipelines.

    Args:
        folder: Where everything is written.
        seconds: How long the videos of the cameras must last.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        clip = make_h264(folder / "clip.mp4", None, CLIP_S)
        video = repeated(clip, folder / "camera.mp4", int(seconds // CLIP_S) + 2)
        self.servers = {name: RtspServer(video) for name in CAMERAS}
        for server in self.servers.values():
            server.start()
        self.proxies = {name: Proxy(server.port) for name, server in self.servers.items()}
        self._folder = folder
        self._clip = clip
        self._model = tiny_model(folder / "colours.onnx")

    def pipelines(self) -> dict[str, Path]:
        """Write both pipelines; return each file by the name that is printed."""
        cameras = {
            name: {
                "kind": "source.video",
                "uri": f"rtsp://127.0.0.1:{self.proxies[name].port}/cam",
                "transport": transport,
                "max_size": SIZE,
                "open_timeout_s": 3,
                "first_frame_timeout_s": 5,
                "read_timeout_s": 2,
                "reconnect": {"delay_ms": 200, "max_delay_ms": 2000},
            }
            for name, transport in CAMERAS.items()
        }
        file = {"file": {"kind": "source.video", "uri": str(self._clip), "loop": 1_000_000}}
        return {"live": self._write("live", cameras, 5), "file": self._write("file", file, 50)}

    def close(self) -> None:
        """End the cameras."""
        for server in self.servers.values():
            server.stop()
        for proxy in self.proxies.values():
            proxy.close()

    def _write(self, name: str, sources: dict[str, Any], latency_ms: int) -> Path:
        """Write a pipeline from sources to lines; the device's time paces a file."""
        detector = {"model": str(self._model), "device": ["emulated:NPU"]}
        stages: dict[str, Any] = {
            **sources,
            "prepare": {
                "kind": "preprocess.image",
                "inputs": {"image": [f"{source}.image" for source in sources]},
                "for": "detector",
                "resize": "stretch",
                "colour": "RGB",
                "scale": 1 / 255,
            },
            "detector": {
                "kind": "infer",
                "inputs": {"tensor": "prepare.tensor"},
                **detector,
                "options": {"latency_ms": latency_ms},
            },
            "colours": {
                "kind": "postprocess.classification",
                "inputs": {"raw": "detector.outputs"},
                "labels": ["red", "green", "blue"],
                "logits": False,
            },
            "results": {
                "kind": "sink.jsonl",
                "inputs": {"classification": "colours.classification"},
                "path": str(self._folder / f"{name}.jsonl"),
            },
        }
        document = {"version": 1, "name": f"soak-{name}-{os.getpid()}", "stages": stages}
        path = self._folder / f"{name}.yaml"
        path.write_text(json.dumps({**document, "restart": RESTART}, indent=1), encoding="utf-8")
        return path


def repeated(clip: Path, path: Path, times: int) -> Path:
    """Write a clip many times one after the other, without decoding it."""
    with av.open(clip) as reader, av.open(path, "w") as writer:
        source = reader.streams.video[0]
        stream = writer.add_stream_from_template(source)
        length = round(CLIP_S / Fraction(source.time_base or 1))
        for number in range(times):
            reader.seek(0)
            for packet in reader.demux(source):
                if packet.dts is None or packet.pts is None:
                    continue
                packet.pts, packet.dts = (t + number * length for t in (packet.pts, packet.dts))
                packet.stream = stream
                writer.mux(packet)
    return path


def tiny_model(path: Path) -> Path:
    """Write a model that says how much red, green and blue a picture has."""
    nodes = [
        onnx.helper.make_node("GlobalAveragePool", ["image"], ["means"]),
        onnx.helper.make_node("Flatten", ["means"], ["flat"]),
        onnx.helper.make_node("Softmax", ["flat"], ["scores"]),
    ]
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("image", [1, 3, 96, 96]), ("scores", [1, 3]))
    ]
    graph = onnx.helper.make_graph(nodes, "colours", values[:1], values[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path
