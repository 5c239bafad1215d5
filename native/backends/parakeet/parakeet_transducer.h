#pragma once

// The decoder of parakeet.cpp as the search for keywords sees it. parakeet_internals.cpp includes it behind
// parakeet.cpp, whose structs it reads.

#include "keywords/keyword_lookahead.h"

namespace voxgate::parakeet_internals {

class ParakeetTransducer final : public Transducer {
 public:
  ParakeetTransducer(parakeet_context& context, parakeet_state& state, parakeet_batch& batch, int threads,
                     const parakeet_full_params& params)
      : context_(context), state_(state), batch_(batch), threads_(threads), params_(params) {}

  TransducerShape shape() const {
    return {state_.n_frames, context_.vocab.token_blank, context_.model.hparams.n_max_tokens};
  }

  bool score(int frame, Scores& scores) override {
    batch_.i_time[0] = frame;
    if (!parakeet_joint(context_, state_, batch_, threads_, params_.abort_callback,
                        params_.abort_callback_user_data))
      return false;
    // Behind the tokens and the blank come the durations.
    const auto durations = state_.logits.begin() + context_.vocab.token_blank + 1;
    scores.logits.assign(state_.logits.begin(), durations);
    const auto longest = std::max_element(durations, state_.logits.end());
    scores.duration = static_cast<int>(context_.model.tdt_durations[longest - durations]);
    return true;
  }

  bool say(int32_t token) override {
    batch_.token[0] = token;
    return parakeet_predict(context_, state_, batch_, threads_, params_.abort_callback,
                            params_.abort_callback_user_data);
  }

  Memory memory() override {
    Memory memory;
    each_tensor([&](ggml_tensor* tensor) {
      const size_t before = memory.size();
      memory.resize(before + ggml_nelements(tensor));
      ggml_backend_tensor_get(tensor, memory.data() + before, 0, ggml_nbytes(tensor));
    });
    return memory;
  }

  void recall(const Memory& memory) override {
    const float* from = memory.data();
    each_tensor([&](ggml_tensor* tensor) {
      ggml_backend_tensor_set(tensor, from, 0, ggml_nbytes(tensor));
      from += ggml_nelements(tensor);
    });
  }

 private:
  template <typename Use> void each_tensor(const Use& use) {
    use(state_.pred_out);
    for (auto& layer : state_.lstm_state.layer) {
      use(layer.h_state);
      use(layer.c_state);
    }
  }

  parakeet_context& context_;
  parakeet_state& state_;
  parakeet_batch& batch_;
  int threads_;
  const parakeet_full_params& params_;
};

// What the callbacks of a run need.
struct Run {
  const TokenCallback& on_token;
  std::optional<KeywordLookahead> lookahead; // where there are keywords
};

} // namespace voxgate::parakeet_internals

// Called by parakeet_decode when it has chosen a token, which may become another one or the blank. Returns
// false when a graph failed or was stopped.
static bool choose_token(parakeet_context& context, parakeet_state& state, const parakeet_full_params* params,
                         int frame, int said, int duration, int& token, float& logit) {
  auto* const run = static_cast<voxgate::parakeet_internals::Run*>(params->new_token_callback_user_data);
  if (run == nullptr || !run->lookahead)
    return true;
  const auto logits = state.logits; // which the search computes anew
  const int tokens = context.vocab.token_blank + 1;
  const auto chosen =
      run->lookahead->choose({frame, said}, {{logits.begin(), logits.begin() + tokens}, duration});
  if (!chosen)
    return false;
  state.logits = logits;
  if (*chosen != token) {
    token = *chosen;
    logit = logits[static_cast<size_t>(token)];
  }
  return true;
}
