"""What finetuning changed inside a model: functions of two models and batches of images."""

from __future__ import annotations

from tracer.analysis.drift import Drift, drift, task_share
from tracer.analysis.layers import LayerSimilarity, layer_similarity
from tracer.analysis.similarity import Moments, canonical_correlations, hsic, linear_cka, minibatch_cka, svcca
