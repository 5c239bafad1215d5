#pragma once

// The encoder's graph for a CPU, of fewer and larger operations than that of parakeet.cpp, which is still
// used on a GPU. parakeet_internals.cpp includes it behind parakeet.cpp, whose structs it reads. The names of
// inputs are those that parakeet.cpp sets.

#include "kernels/speech_ops.h"

namespace voxgate::parakeet_internals {

class EncoderGraph {
 public:
  EncoderGraph(ggml_context* context, const SpeechOps& ops, const parakeet_hparams& hparams)
      : context_(context), ops_(ops), width_(hparams.n_audio_state), heads_(hparams.n_audio_head),
        epsilon_(hparams.eps) {}

  // From the spectrogram [mels, frames] to a row for each eighth frame.
  ggml_tensor* subsample(const parakeet_model& model, ggml_tensor* mel) {
    const int64_t channels = model.enc_pre_conv_2_w->ne[3];
    const int64_t bands = halved(halved(mel->ne[0])), frames = halved(halved(mel->ne[1]));
    auto* x = custom(ops_.subsample, channels, subsample_rows(mel->ne[0], mel->ne[1]), nullptr,
                     {mel, model.enc_pre_conv_0_w, model.enc_pre_conv_0_b, model.enc_pre_conv_2_w,
                      model.enc_pre_conv_2_b});
    x = pointwise(model.enc_pre_conv_3_w, first_rows(x, frames * bands));
    x = custom(ops_.subsample_again, channels, subsample_again_rows(bands, frames),
               speech_user(static_cast<int>(bands)),
               {x, model.enc_pre_conv_3_b, model.enc_pre_conv_5_w, model.enc_pre_conv_5_b});
    const int64_t last_bands = halved(bands), time = halved(frames);
    x = pointwise(model.enc_pre_conv_6_w, first_rows(x, time * last_bands));
    x = ggml_relu(context_,
                  ggml_add(context_, x, ggml_reshape_1d(context_, model.enc_pre_conv_6_b, channels)));
    x = ggml_permute(context_, ggml_reshape_3d(context_, x, channels, last_bands, time), 1, 0, 2, 3);
    x = ggml_cont_2d(context_, x, last_bands * channels, time);
    return ggml_add(context_, ggml_mul_mat(context_, model.enc_pre_out_w, x), model.enc_pre_out_b);
  }

  ggml_tensor* layer(const parakeet_layer_encoder& layer, ggml_tensor* x, ggml_tensor* positions,
                     ggml_tensor* mask) {
    x = feed_forward(x, norm(x, layer.norm_ff1_w, layer.norm_ff1_b), layer.ff1_linear1_w,
                     layer.ff1_linear2_w);
    x = finish(attention(layer, norm(x, layer.norm_attn_w, layer.norm_attn_b), positions, mask), kCarry, {x});
    auto* heard = ggml_mul_mat(context_, layer.conv_pw1_w, norm(x, layer.norm_conv_w, layer.norm_conv_b));
    heard = custom(
        ops_.convolution, width_, convolution_rows(layer.conv_dw_w->ne[0], x->ne[1]), nullptr,
        {heard, layer.conv_dw_w, layer.conv_bn_mean, layer.conv_bn_var, layer.conv_bn_w, layer.conv_bn_b});
    x = finish(ggml_mul_mat(context_, layer.conv_pw2_w, first_rows(heard, x->ne[1])), kCarry, {x});
    x = feed_forward(x, norm(x, layer.norm_ff2_w, layer.norm_ff2_b), layer.ff2_linear1_w,
                     layer.ff2_linear2_w);
    return norm(x, layer.norm_out_w, layer.norm_out_b);
  }

 private:
  ggml_tensor* custom(ggml_custom_op_t op, int64_t width, int64_t rows, void* user,
                      std::vector<ggml_tensor*> args) {
    return ggml_custom_4d(context_, GGML_TYPE_F32, width, rows, 1, 1, args.data(),
                          static_cast<int>(args.size()), op, GGML_N_TASKS_MAX, user);
  }

  ggml_tensor* first_rows(ggml_tensor* x, int64_t rows) {
    return ggml_view_2d(context_, x, x->ne[0], rows, x->nb[1], 0);
  }

  ggml_tensor* pointwise(ggml_tensor* weights, ggml_tensor* x) {
    return ggml_mul_mat(context_, ggml_reshape_2d(context_, weights, weights->ne[2], weights->ne[3]), x);
  }

  ggml_tensor* norm(ggml_tensor* x, ggml_tensor* weight, ggml_tensor* bias) {
    return custom(ops_.norm, width_, x->ne[1], speech_user(epsilon_), {x, weight, bias});
  }

  ggml_tensor* feed_forward(ggml_tensor* x, ggml_tensor* normed, ggml_tensor* expand, ggml_tensor* contract) {
    auto* hidden = finish(ggml_mul_mat(context_, expand, normed), kSilu, {});
    return finish(ggml_mul_mat(context_, contract, hidden), kHalf | kCarry, {x});
  }

  ggml_tensor* finish(ggml_tensor* product, int steps, std::vector<ggml_tensor*> args) {
    return ggml_custom_inplace(context_, product, args.data(), static_cast<int>(args.size()), ops_.finish,
                               GGML_N_TASKS_MAX, speech_user(steps));
  }

  ggml_tensor* attention(const parakeet_layer_encoder& layer, ggml_tensor* x, ggml_tensor* positions,
                         ggml_tensor* mask) {
    auto* mixed = custom(
        ops_.attention, width_, attention_rows(width_, heads_, x->ne[1], positions->ne[1]),
        speech_user(heads_),
        {ggml_mul_mat(context_, layer.attn_q_w, x), ggml_mul_mat(context_, layer.attn_k_w, x),
         ggml_mul_mat(context_, layer.attn_v_w, x), ggml_mul_mat(context_, layer.attn_pos_w, positions),
         layer.attn_pos_bias_u, layer.attn_pos_bias_v, mask});
    return ggml_mul_mat(context_, layer.attn_out_w, first_rows(mixed, x->ne[1]));
  }

  ggml_context* context_;
  const SpeechOps& ops_;
  int64_t width_;
  int heads_;
  float epsilon_;
};

// The operations for a state that computes on nothing but a CPU; else null.
const SpeechOps* cpu_ops(const parakeet_state& state) {
  const auto get = state.backends.size() == 1
                       ? backend_proc<GetSpeechOps>(state.backends.front(), kGetSpeechOps)
                       : nullptr;
  return get != nullptr ? get() : nullptr;
}

} // namespace voxgate::parakeet_internals

static ggml_cgraph* parakeet_build_graph_encode(parakeet_context& context, parakeet_state& state) {
  using namespace voxgate;
  const auto& hparams = context.model.hparams;
  const int64_t frames = state.n_audio_ctx > 0 ? state.n_audio_ctx : hparams.n_audio_ctx;
  const int64_t time = halved(halved(halved(frames)));
  const auto* ops = parakeet_internals::cpu_ops(state);
  if (ops == nullptr || time > PARAKEET_LOCAL_ATTN_THRESHOLD)
    return upstream_build_graph_encode(context, state);

  auto& memory = state.sched_encode.meta;
  const ggml_context_ptr owned(ggml_init({memory.size(), memory.data(), true}));
  auto* ggml = owned.get();
  const auto input = [ggml](const char* name, int64_t columns, int64_t rows) {
    auto* tensor = ggml_new_tensor_2d(ggml, GGML_TYPE_F32, columns, rows);
    ggml_set_name(tensor, name);
    ggml_set_input(tensor);
    return tensor;
  };
  auto* graph = ggml_new_graph_custom(ggml, PARAKEET_MAX_NODES, false);
  auto* mel = input("mel", hparams.n_mels, frames);
  auto* mask = input("attn_mask", time, time); // all of its rows are alike
  const int64_t half = hparams.n_audio_state / 2, window = 2 * time - 1;
  auto* angles = ggml_mul(ggml, ggml_repeat_4d(ggml, input("pos_freqs", half, 1), half, window, 1, 1),
                          input("rel_positions", 1, window));
  auto* positions = ggml_concat(ggml, ggml_reshape_3d(ggml, ggml_sin(ggml, angles), 1, half, window),
                                ggml_reshape_3d(ggml, ggml_cos(ggml, angles), 1, half, window), 0);
  positions = ggml_reshape_2d(ggml, positions, 2 * half, window);

  parakeet_internals::EncoderGraph encoder(ggml, *ops, hparams);
  auto* x = encoder.subsample(context.model, mel);
  for (const auto& layer : context.model.layers)
    x = encoder.layer(layer, x, positions, mask);
  ggml_set_name(x, "encoder_out");
  state.n_frames = static_cast<int>(time);
  auto* out = ggml_view_2d(ggml, state.enc_out, hparams.n_audio_state, time, state.enc_out->nb[1], 0);
  ggml_build_forward_expand(graph, ggml_cpy(ggml, x, out));
  return graph;
}
