"""Makes the encoders of Parakeet TDT 0.6b v3 and SenseVoice small as ONNX models, in floats and in int8.

    encoder_models.py fastconformer|sanm FOLDER [LAYERS]      writes fp32.onnx and int8.onnx there

The shapes are the published ones, the weights are random: they serve to compare speed. Both networks are written as
their authors' code computes them (NeMo's ConformerEncoder, funasr's SenseVoiceEncoderSmall), and are exported by
PyTorch with a length of its own at each run. int8 is onnxruntime's dynamic quantization, one scale for each channel.
"""
import math
import sys
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn
from torch.nn import functional

# Parakeet TDT 0.6b v3: the encoder's part of its configuration.
LAYERS, WIDTH, HEADS, HIDDEN, KERNEL, MELS, CHANNELS = 24, 1024, 8, 4096, 9, 128, 256
# SenseVoice small: 80 bands, 7 frames stacked; 50 blocks, then 20 more.
STACKED, BLOCKS, TP_BLOCKS, SV_WIDTH, SV_HEADS, SV_HIDDEN, SV_KERNEL, SV_VOCABULARY = 560, 50, 20, 512, 4, 2048, 11, 25055


class RelativeAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out, self.pos = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(5))
        self.bias_u, self.bias_v = (nn.Parameter(0.1 * torch.randn(HEADS, WIDTH // HEADS)) for _ in range(2))

    def forward(self, x, positions):
        heads = lambda y: y.view(1, -1, HEADS, WIDTH // HEADS)  # noqa: E731
        q, k, v = heads(self.q(x)), heads(self.k(x)).transpose(1, 2), heads(self.v(x)).transpose(1, 2)
        pos = heads(self.pos(positions)).transpose(1, 2)
        content = (q + self.bias_u).transpose(1, 2) @ k.transpose(-2, -1)
        relative = (q + self.bias_v).transpose(1, 2) @ pos.transpose(-2, -1)
        time, window = relative.shape[2], relative.shape[3]
        shifted = functional.pad(relative, (1, 0)).view(1, HEADS, window + 1, time)[:, :, 1:].reshape(1, HEADS, time, window)
        scores = (content + shifted[..., :time]) / math.sqrt(WIDTH // HEADS)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(1, -1, WIDTH))


class ConformerLayer(nn.Module):
    def __init__(self):
        super().__init__()
        forward = lambda: nn.Sequential(nn.Linear(WIDTH, HIDDEN, bias=False), nn.SiLU(), nn.Linear(HIDDEN, WIDTH, bias=False))  # noqa: E731
        self.forward1, self.forward2, self.attention = forward(), forward(), RelativeAttention()
        self.norm1, self.norm2, self.norm3, self.norm4, self.norm5 = (nn.LayerNorm(WIDTH) for _ in range(5))
        self.pointwise1 = nn.Conv1d(WIDTH, 2 * WIDTH, 1, bias=False)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, KERNEL, padding=KERNEL // 2, groups=WIDTH, bias=False)
        self.batch_norm = nn.BatchNorm1d(WIDTH)
        self.pointwise2 = nn.Conv1d(WIDTH, WIDTH, 1, bias=False)

    def forward(self, x, positions):
        x = x + 0.5 * self.forward1(self.norm1(x))
        x = x + self.attention(self.norm2(x), positions)
        y = functional.glu(self.pointwise1(self.norm3(x).transpose(1, 2)), dim=1)
        y = self.pointwise2(functional.silu(self.batch_norm(self.depthwise(y))))
        x = x + y.transpose(1, 2)
        x = x + 0.5 * self.forward2(self.norm4(x))
        return self.norm5(x)


class FastConformer(nn.Module):
    def __init__(self):
        super().__init__()
        depthwise = lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1, groups=CHANNELS)  # noqa: E731
        pointwise = lambda: nn.Conv2d(CHANNELS, CHANNELS, 1)  # noqa: E731
        self.subsample = nn.Sequential(
            nn.Conv2d(1, CHANNELS, 3, 2, 1), nn.ReLU(), depthwise(), pointwise(), nn.ReLU(), depthwise(), pointwise(), nn.ReLU()
        )  # fmt: skip
        self.project = nn.Linear(MELS // 8 * CHANNELS, WIDTH)
        self.layers = nn.ModuleList(ConformerLayer() for _ in range(LAYERS))
        self.register_buffer("rates", torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH)))

    def forward(self, mel):
        """Takes [1, frames, mels] and gives [1, frames / 8, width]."""
        x = self.subsample(mel[:, None])
        x = self.project(x.transpose(1, 2).reshape(1, -1, CHANNELS * (MELS // 8)))
        time = x.shape[1]
        angles = torch.arange(time - 1, -time, -1)[:, None] * self.rates
        positions = torch.stack((angles.sin(), angles.cos()), dim=-1).reshape(1, -1, WIDTH)
        for layer in self.layers:
            x = layer(x, positions)
        return x


class SanmBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.carry = width == SV_WIDTH
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(SV_WIDTH)
        self.qkv, self.out = nn.Linear(width, 3 * SV_WIDTH), nn.Linear(SV_WIDTH, SV_WIDTH)
        self.memory = nn.Conv1d(SV_WIDTH, SV_WIDTH, SV_KERNEL, padding=SV_KERNEL // 2, groups=SV_WIDTH, bias=False)
        self.expand, self.contract = nn.Linear(SV_WIDTH, SV_HIDDEN), nn.Linear(SV_HIDDEN, SV_WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).split(SV_WIDTH, dim=-1)
        heads = lambda y: y.view(1, -1, SV_HEADS, SV_WIDTH // SV_HEADS).transpose(1, 2)  # noqa: E731
        seen = self.memory(v.transpose(1, 2)).transpose(1, 2) + v
        scores = (heads(q) * (SV_WIDTH // SV_HEADS) ** -0.5) @ heads(k).transpose(-2, -1)
        mixed = (torch.softmax(scores, dim=-1) @ heads(v)).transpose(1, 2).reshape(1, -1, SV_WIDTH)
        heard = self.out(mixed) + seen
        x = x + heard if self.carry else heard
        return x + self.contract(torch.relu(self.expand(self.norm2(x))))


class Sanm(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(SanmBlock(STACKED if i == 0 else SV_WIDTH) for i in range(BLOCKS))
        self.tp_blocks = nn.ModuleList(SanmBlock(SV_WIDTH) for _ in range(TP_BLOCKS))
        self.after_norm, self.tp_norm = nn.LayerNorm(SV_WIDTH), nn.LayerNorm(SV_WIDTH)
        self.head = nn.Linear(SV_WIDTH, SV_VOCABULARY)

    def forward(self, x):
        """Takes [1, frames, 560] with the queries before and the positions added; gives [1, frames, vocabulary]."""
        for block in self.blocks:
            x = block(x)
        x = self.after_norm(x)
        for block in self.tp_blocks:
            x = block(x)
        return self.head(self.tp_norm(x))


def export(model, width, folder):
    folder.mkdir(parents=True, exist_ok=True)
    plain, prepared, small = (folder / name for name in ("fp32.onnx", "prepared.onnx", "int8.onnx"))
    with torch.no_grad():
        torch.onnx.export(model.eval(), (torch.randn(1, 401, width),), str(plain), input_names=["input"], output_names=["output"],
                          dynamic_axes={"input": {1: "frames"}, "output": {1: "frames"}}, opset_version=17, dynamo=False)  # fmt: skip
    return plain, prepared, small


if __name__ == "__main__":
    torch.manual_seed(1)
    network, target = sys.argv[1], Path(sys.argv[2])
    if len(sys.argv) > 3:
        LAYERS = BLOCKS = TP_BLOCKS = int(sys.argv[3])
    model, width = (FastConformer(), MELS) if network == "fastconformer" else (Sanm(), STACKED)
    plain, prepared, small = export(model, width, target)
    quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True, save_as_external_data=True)
    quantize_dynamic(str(prepared), str(small), per_channel=True, weight_type=QuantType.QInt8, use_external_data_format=False)
