import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from edgert.backends.base import ByteInput, Session
from edgert.backends.registry import backend, read_signature
from edgert.backends.survey import Runtime, survey
from edgert.errors import DeviceError, ModelError
from edgert.tensor import Quantisation, TensorSpec
from tests import models

pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: it brings the schema")

from edgert.backends.tflite_model import may_be_rounded  # noqa: E402  it imports the library
from tests import tflite_models  # noqa: E402  it needs the schema

ADD, MUL = 0, 18


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return tflite_models.doubling(tmp_path / "doubling.tflite")


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return tflite_models.chain(tmp_path / "chain.tflite")


@pytest.fixture(scope="session")
def taker(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A delegate that takes what it is told to, as a device."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("delegate") / "libtaker.so"
    source = Path(__file__).parent / "delegate.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return f"external:{library}"


def refused(model: Path, words: str, **asked: object) -> None:
    with pytest.raises(DeviceError, match=words), models.session_of("tflite", model, **asked):
        pass


def taking(*codes: int) -> Mapping[str, object]:
    return {"delegate": {"take": ",".join(map(str, codes))}}


@pytest.mark.parametrize("device", ["CPU", "cpu"])
@pytest.mark.parametrize(
    "options", [{}, {"xnnpack": True}, {"xnnpack": False}, {"delegate": {"a": 1}}]
)
def test_the_cpu_computes_with_and_without_xnnpack(
    device: str, options: dict[str, object], chain: Path
) -> None:
    with models.session_of("tflite", chain, device=device, options=options) as session:
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.arange(4, dtype=np.float32)}, outputs)
        assert outputs["y"].tolist() == [0, 4, 16, 36]
        assert session.device.actual == "tflite:CPU"
        assert session.device.placed == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"xnnpack": "yes"}, "Expected `bool | null`, got `str`"),
        ({"xnpack": False}, "Did you mean 'xnnpack'"),
        ({"delegate": {"a": [1]}}, "Expected `str | int | float | bool`"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str, doubling: Path) -> None:
    refused(doubling, words, options=options)


@pytest.mark.parametrize("device", ["edgetpu", "vx", "ethosu", "gpu"])
def test_a_delegate_that_is_not_here_is_refused_with_the_mend(device: str, doubling: Path) -> None:
    if device in backend("tflite").devices():
        pytest.skip(f"there is a {device} here")
    refused(
        doubling,
        rf"tflite:{device}: (there is no /dev/|its library).*\. It (is|comes) ",
        device=device,
    )


def test_a_library_that_is_no_delegate_is_refused(doubling: Path, tmp_path: Path) -> None:
    missing, text = tmp_path / "missing.so", tmp_path / "text.so"
    text.write_text("no library")
    refused(doubling, "cannot be loaded: .*No such file", device=f"external:{missing}")
    refused(doubling, "cannot be loaded: .*(invalid ELF|too short)", device=f"external:{text}")
    refused(doubling, "is no delegate: it has no tflite_plugin", device="external:libc.so.6")


def test_a_delegate_that_refuses_is_quoted(doubling: Path, taker: str) -> None:
    options = {"delegate": {"refuse": "the stick is not plugged in"}}
    refused(doubling, "refuses: .*the stick is not plugged in", device=taker, options=options)


def test_a_delegate_that_is_listed_is_usable_only_if_it_takes_the_trial_model(
    taker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(taker.removeprefix("external:"), tmp_path / "libtensorflowlite_gpu_delegate.so")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    (runtime,) = survey(["tflite"])
    assert isinstance(runtime, Runtime)
    (gpu,) = [state for state in runtime.devices if state.device == "gpu"]
    assert (gpu.usable, gpu.proof) == (False, "")
    assert gpu.reason == "it took none of the model's 1 operators"


def test_a_delegate_that_takes_nothing_is_not_where_it_runs(chain: Path, taker: str) -> None:
    refused(chain, "took none of the model's 2 operators", device=taker)


def test_a_delegate_that_has_to_take_all_and_does_not_is_refused(chain: Path, taker: str) -> None:
    refused(
        chain,
        "took only 1 of 2 operators of the model. Write 'fallback: allow'",
        device=taker,
        options=taking(MUL),
        whole=True,
    )


@pytest.mark.parametrize("requests", [1, 2])
@pytest.mark.parametrize(
    ("codes", "actual", "placed"),
    [
        ([ADD, MUL], "tflite:{}", "2 of 2 operators"),
        ([MUL], "tflite:{},CPU", "1 of 2 operators"),
    ],
)
def test_what_a_delegate_took_is_counted(
    requests: int, codes: list[int], actual: str, placed: str, chain: Path, taker: str
) -> None:
    asked = {"device": taker, "requests": requests, "options": taking(*codes)}
    with models.session_of("tflite", chain, **asked) as session:
        report = session.device
        models.infer(session, models.arrays_for(session.inputs), models.arrays_for(session.outputs))
    assert report.requested == f"tflite:{taker}"
    assert report.actual == actual.format(taker)
    assert report.placed == placed
    assert report.precision == "unknown"


def test_it_is_counted_after_shapes_have_changed(tmp_path: Path, taker: str) -> None:
    model = tflite_models.doubling(tmp_path / "m.tflite", ["n", 3])
    asked = {"device": taker, "shapes": {"x": [5, 3]}, "options": taking(ADD)}
    with models.session_of("tflite", model, **asked) as session:
        assert session.device.placed == "1 of 1 operators"
        assert str(session.outputs["y"]) == "f32[5,3]"


def test_xnnpack_beside_a_delegate_is_refused(chain: Path, taker: str) -> None:
    options = {**taking(ADD), "xnnpack": True}
    refused(chain, "beside a delegate XNNPACK is off", device=taker, options=options)


def test_an_operator_of_a_delegates_own_is_refused_by_the_cpu(tmp_path: Path) -> None:
    model = tflite_models.foreign(tmp_path / "m.tflite")
    signature = backend("tflite").signature(str(model), {})
    assert {str(spec) for spec in signature.outputs.values()} == {"f32[2]"}
    refused(model, "it refuses the model: .*their-custom-op")


def test_one_request_is_done_before_start_returns(doubling: Path) -> None:
    with models.session_of("tflite", doubling) as session:
        ended: list[BaseException | None] = []
        session.start(
            models.arrays_for(session.inputs), models.arrays_for(session.outputs), ended.append
        )
        assert ended == [None]


def test_a_model_that_allows_half_floats_may_get_them_on_arm(tmp_path: Path) -> None:
    allows = str(tflite_models.chain(tmp_path / "a.tflite", "reduced_precision_support"))
    does_not = str(tflite_models.chain(tmp_path / "b.tflite"))
    assert may_be_rounded(allows, "aarch64")
    assert not may_be_rounded(does_not, "aarch64")
    assert not may_be_rounded(allows, "x86_64")


def test_it_reads_signatures_where_openvino_is_not_installed(tmp_path: Path) -> None:
    model = tflite_models.convolution(tmp_path / "m.tflite", ["n", 3, "h", "w"])
    code = (
        "import sys; sys.modules['openvino'] = None; from edgert.backends import registry;"
        "found = registry.inspect(sys.argv[1], 'tflite', {'x': [1, 3, 4, 4]});"
        "print(found['inputs'], found['outputs'], found['macs'])"
    )
    command = [sys.executable, "-c", code, str(model)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "'shape': [1, 3, 4, 4]" in said
    assert "'shape': [1, 64]" in said
    assert said.endswith("None\n")


def test_quantised_tensors_stay_as_the_model_has_them(tmp_path: Path) -> None:
    model = tflite_models.doubling(tmp_path / "m.tflite", (1, 2, 2, 3), "u8")
    with (
        pytest.raises(ModelError, match=r"cannot become its input 'x', which is u8\[1,2,2,3\]"),
        models.session_of("tflite", model, bytes={"x": ByteInput("NHWC")}),
    ):
        pass


def test_the_scale_of_what_is_quantised_is_told(tmp_path: Path) -> None:
    file = tflite_models.doubling(tmp_path / "m.tflite", (1, 4), "u8")
    found = backend("tflite").signature(str(file), {})
    assert found.inputs == {"x": TensorSpec("u8", (1, 4), Quantisation(1.0, 0))}
    assert found.outputs == {"y": TensorSpec("u8", (1, 4), Quantisation(1.0, 0))}
    told = read_signature(str(file), {}, "tflite")["outputs"]["y"]
    assert told == {
        "dtype": "u8",
        "shape": [1, 4],
        "quantisation": {"scale": 1.0, "zero_point": 0},
    }


def test_floats_have_no_scale(doubling: Path) -> None:
    (output,) = backend("tflite").signature(str(doubling), {}).outputs.values()
    assert output.quantisation is None


# Run apart, with a package of its own: the trap is in the library's binary, and the same words.
TRAP = """
def __getattr__(name):
    raise AttributeError(name)
class Interpreter:
    def __init__(self, **keywords):
        raise SystemError("returned a result with an exception set") from ImportError(
            "numpy.core.multiarray failed to import")
"""
ASK = """
import sys
sys.modules["ai_edge_litert"] = None
sys.path.insert(0, sys.argv[1])
from edgert.backends.registry import backend, read_signature
from edgert.errors import DeviceError
try:
    print(backend("tflite").name)
except DeviceError as error:
    print(error)
"""


def test_a_library_that_numpy_2_breaks_is_explained_at_the_start(tmp_path: Path) -> None:
    for folder in ("tflite_runtime", "tflite_runtime-2.14.0.dist-info"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tflite_runtime" / "__init__.py").touch()
    (tmp_path / "tflite_runtime" / "interpreter.py").write_text(TRAP)
    metadata = "Metadata-Version: 2.1\nName: tflite-runtime\nVersion: 2.14.0\n"
    (tmp_path / "tflite_runtime-2.14.0.dist-info" / "METADATA").write_text(metadata)
    command = [sys.executable, "-c", ASK, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "tflite-runtime 2.14.0 is installed and can make no interpreter: numpy.core" in said
    if np.__version__ >= "2":
        assert f"it was built for numpy 1, and numpy {np.__version__} is here" in said
        assert "pip install 'edgert[tflite]'" in said


def classify(session: Session, picture: np.ndarray) -> np.ndarray:
    outputs = models.arrays_for(session.outputs)
    models.infer(session, {next(iter(session.inputs)): picture}, outputs)
    return next(iter(outputs.values()))


def test_a_quantised_classifier_knows_a_picture(assets: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    model = assets / "models" / "mobilenet_v2_1.0_224_quant.tflite"
    photo = next((assets / "media").glob("grace_hopper.*"), None)
    if not model.is_file() or photo is None:
        pytest.skip(f"no test asset {model} or grace_hopper")
    picture = cv2.cvtColor(cv2.resize(cv2.imread(str(photo)), (224, 224)), cv2.COLOR_BGR2RGB)
    with models.session_of("tflite", model, threads=2) as session:
        assert [str(spec) for spec in session.inputs.values()] == ["u8[1,224,224,3]"]
        scores = classify(session, np.ascontiguousarray(picture[None]))
    assert scores.dtype == np.uint8
    assert scores.argmax() == 653  # military uniform, counted with the background


def test_a_segmentation_gives_whole_numbers(assets: Path) -> None:
    model = assets / "models" / "deeplabv3_mnv2_dm05_pascal_quant.tflite"
    if not model.is_file():
        pytest.skip(f"no test asset {model}")
    with models.session_of("tflite", model, requests=2, threads=2) as session:
        mask = classify(session, np.zeros((1, 513, 513, 3), np.uint8))
    assert mask.dtype == np.int64
    assert set(np.unique(mask)) <= set(range(21))
