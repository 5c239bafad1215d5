#pragma once

#include <cstddef>

// What the layers of a transformer need besides products. Each works in place; `add` changes the sums.

namespace voxgate {

// x times the normal distribution's share below x (https://arxiv.org/abs/1606.08415).
void gelu(float* values, size_t count);

void tangents(float* values, size_t count);

void add(const float* values, size_t count, float* sums);

void scale(float* values, size_t count, float factor);

// There must be at least one value.
void softmax(float* values, size_t count);

} // namespace voxgate
