#include "backends/sensevoice/sensevoice_weights.h"

#include "backends/pages.h"
#include "models/ggml_file.h"
#include "status.h"

#include <ggml.h>

#include <cstring>

namespace voxgate {
namespace {

bool is_plain(int32_t type) {
  return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

bool is_multipliable(int32_t type) {
  return is_matrix_type(type) || type == GGML_TYPE_BF16;
}

void to_floats(const GgufTensor& tensor, const std::vector<char>& raw, std::vector<float>& floats) {
  size_t count = 1;
  for (const auto extent : tensor.shape)
    count *= static_cast<size_t>(extent);
  floats.resize(count);
  const auto type = static_cast<ggml_type>(tensor.type);
  if (type == GGML_TYPE_F32)
    std::copy_n(reinterpret_cast<const float*>(raw.data()), count, floats.begin());
  else
    ggml_get_type_traits(type)->to_float(raw.data(), floats.data(), static_cast<int64_t>(count));
}

} // namespace

// Finds each tensor by name, checks it, and remembers where its data must go.
class SenseVoiceWeights::Binder {
 public:
  Binder(const GgufFile& file, ggml_context* context) : file_(file), context_(context) {
    for (const auto& tensor : file.tensors())
      unbound_.emplace(tensor.name, &tensor);
  }

  struct Target {
    ggml_tensor* device = nullptr;
    std::vector<float>* host = nullptr;
  };

  void host(std::vector<float>& values, const std::string& name, const std::vector<int64_t>& shape,
            bool matrix = false) {
    take(name, shape, matrix);
    targets_[name].host = &values;
  }

  ggml_tensor* small(const std::string& name, const std::vector<int64_t>& shape) {
    take(name, shape, false);
    return device(name, GGML_TYPE_F32, shape);
  }

  SenseVoiceNorm norm(const std::string& name, int64_t width) {
    return {small(name + ".weight", {width}), small(name + ".bias", {width})};
  }

  SenseVoiceLinear linear(const std::string& name, int64_t in, int64_t out) {
    const std::vector<int64_t> shape{in, out};
    const auto type = static_cast<ggml_type>(take(name + ".weight", shape, true).type);
    auto* weight = device(name + ".weight", type, shape);
    return {weight, small(name + ".bias", {out})};
  }

  SenseVoiceBlock block(const std::string& name, const SenseVoiceShape& shape, int64_t in) {
    SenseVoiceBlock block;
    block.attention_norm = norm(name + ".norm_attn", in);
    block.qkv = linear(name + ".attn.qkv", in, int64_t{3} * shape.width);
    block.out = linear(name + ".attn.out", shape.width, shape.width);
    // Depthwise convolution in two dimensions, one of them 1: that kernel exists on every compute backend.
    const auto memory = name + ".attn.fsmn.weight";
    take(memory, {shape.kernel, 1, shape.width}, false);
    block.memory = device(memory, GGML_TYPE_F32, {shape.kernel, 1, 1, shape.width});
    block.feed_forward_norm = norm(name + ".norm_ffn", shape.width);
    block.expand = linear(name + ".ffn.fc1", shape.width, shape.hidden);
    block.contract = linear(name + ".ffn.fc2", shape.hidden, shape.width);
    return block;
  }

  void finish() const {
    if (!unbound_.empty())
      file_.fail("it has a tensor that does not belong to it: " + unbound_.begin()->first);
  }

  const Target& target(const std::string& name) const { return targets_.at(name); }

 private:
  const GgufTensor& take(const std::string& name, const std::vector<int64_t>& shape, bool matrix) {
    const auto found = unbound_.find(name);
    if (found == unbound_.end())
      file_.fail("it has no tensor " + name);
    const GgufTensor& tensor = *found->second;
    if (tensor.shape != shape)
      file_.fail("its tensor " + name + " has an unexpected shape");
    if (matrix ? !is_multipliable(tensor.type) : !is_plain(tensor.type))
      file_.fail("its tensor " + name + " has an unexpected type");
    unbound_.erase(found);
    return tensor;
  }

  ggml_tensor* device(const std::string& name, ggml_type type, const std::vector<int64_t>& shape) {
    auto* tensor = ggml_new_tensor(context_, type, static_cast<int>(shape.size()), shape.data());
    ggml_set_name(tensor, name.c_str());
    targets_[name].device = tensor;
    return tensor;
  }

  const GgufFile& file_;
  ggml_context* context_;
  std::map<std::string, const GgufTensor*> unbound_;
  std::map<std::string, Target> targets_;
};

SenseVoiceWeights::SenseVoiceWeights(GgufFile& file, const SenseVoiceShape& shape,
                                     ggml_backend_buffer_type_t buffer_type, const CancelToken& cancel) {
  // The context holds no more tensors than the file has: each is bound once.
  context_.reset(ggml_init({ggml_tensor_overhead() * (file.tensors().size() + 1), nullptr, true}));
  if (!context_)
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the model");
  Binder binder(file, context_.get());
  binder.host(shift, "frontend.cmvn.shift", {shape.input});
  binder.host(scale, "frontend.cmvn.scale", {shape.input});
  binder.host(queries, "enc.embed.weight", {shape.input, kSenseVoiceQueryRows}, true);
  blocks.push_back(binder.block("enc.encoders0.0", shape, shape.input));
  for (int i = 0; i + 1 < shape.blocks; ++i)
    blocks.push_back(binder.block("enc.encoders." + std::to_string(i), shape, shape.width));
  for (int i = 0; i < shape.tp_blocks; ++i)
    tp_blocks.push_back(binder.block("enc.tp_encoders." + std::to_string(i), shape, shape.width));
  after_norm = binder.norm("enc.after_norm", shape.width);
  tp_norm = binder.norm("enc.tp_norm", shape.width);
  head = binder.linear("ctc.head", shape.width, shape.vocabulary);
  binder.finish();

  buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), buffer_type));
  if (!buffer_)
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the weights of the model");
  ask_for_large_pages(buffer_.get());
  ggml_backend_buffer_set_usage(buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);

  std::vector<char> raw;
  std::vector<float> floats;
  file.read_data(
      [&](const GgufTensor& tensor) {
        cancel.check();
        raw.resize(tensor.bytes);
        return raw.data();
      },
      [&](const GgufTensor& tensor) {
        const auto& target = binder.target(tensor.name);
        if (target.host != nullptr) {
          to_floats(tensor, raw, *target.host);
        } else if (target.device->type == tensor.type) {
          ggml_backend_tensor_set(target.device, raw.data(), 0, raw.size());
        } else {
          to_floats(tensor, raw, floats);
          ggml_backend_tensor_set(target.device, floats.data(), 0, floats.size() * sizeof(float));
        }
      });
}

std::vector<float> SenseVoiceWeights::head_row(int32_t token) const {
  const auto* weight = head.weight;
  const auto at = static_cast<size_t>(token);
  const auto width = static_cast<size_t>(weight->ne[0]);
  std::vector<char> raw(ggml_row_size(weight->type, weight->ne[0]));
  ggml_backend_tensor_get(weight, raw.data(), at * raw.size(), raw.size());
  std::vector<float> row(width + 1);
  if (weight->type == GGML_TYPE_F32)
    std::memcpy(row.data(), raw.data(), raw.size());
  else
    ggml_get_type_traits(weight->type)->to_float(raw.data(), row.data(), weight->ne[0]);
  ggml_backend_tensor_get(head.bias, &row[width], at * sizeof(float), sizeof(float));
  return row;
}

} // namespace voxgate
