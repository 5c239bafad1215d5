#pragma once

#include "backends/thread_budget.h"
#include "cancel.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct whisper_context;
struct whisper_context_params;
struct whisper_state;

// Doors into the private structs of whisper.cpp, for what its C API does not offer. whisper_internals.cpp
// compiles whisper.cpp itself, so a new version that moves these fields fails to compile there instead of
// misbehaving.

namespace voxgate::whisper_internals {

// Handed to whisper.cpp as the user data of its abort callback. `armed` is cleared during the alignment pass,
// whose decoder must not fail: whisper.cpp would abort() the process.
struct AbortSwitch {
  const CancelToken* cancel = nullptr;
  bool armed = true;
};

// A ggml_abort_callback over an AbortSwitch.
bool should_abort(void* abort_switch);

// A context of its own over the weights of another one, which it keeps: what is set in it, as below, is set
// for one lane. Safe while other views are in use.
std::shared_ptr<whisper_context> view_of(std::shared_ptr<const whisper_context> whole,
                                         const whisper_context_params& params);

// While it lives, graphs of this thread are computed by the thread's share of the budget.
class BudgetScope {
 public:
  explicit BudgetScope(ThreadBudget& budget);
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;
  ~BudgetScope();

 private:
  ThreadBudget& budget_;
};

// How states are made and run from here on. One context serves both kinds of state, but flash attention lays
// out the attention caches differently and hides the weights the alignment needs, so a state must always be
// used with the setting it was made with. The alignment heads are chosen from the shape of the model.
void use_alignment(whisper_context& context, bool aligned);

// Windows this thread has aligned so far. Only for the test that our guard around the pass is in place.
int alignments_done();

// Forgets what earlier calls left behind and would show in later ones: the random generator of the first
// decoder (whisper.cpp reseeds only the others).
void reset_sampling(whisper_state& state);

// Around every call that runs graphs of the audio (not around the making of a state): on a CPU, attention
// sees the positions of the audio context and no others.
class ExactPositions {
 public:
  explicit ExactPositions(const whisper_context& context);
  ExactPositions(const ExactPositions&) = delete;
  ExactPositions& operator=(const ExactPositions&) = delete;
  ~ExactPositions();
};

// Clears what the last call left in the attention caches for audio. Needed on a GPU, where the positions are
// padded, whenever the audio context changes.
void forget_audio(whisper_state& state);

void set_audio_context(whisper_state& state, int audio_context);

// From here on, on this thread, no spectrogram is made for this state and its audio graphs are built but not
// run: what they would write is there already. Null ends it. The decoder is not concerned.
void skip_encoding(const whisper_state* state);

// Audio graphs this thread has skipped so far. Only for the test that they are.
int encodings_skipped();

// Makes every graph of the state that runs on a CPU stop between two operations; null takes it back.
void set_graph_abort(whisper_state& state, AbortSwitch* abort_switch);

// All bytes of a text token; the C API's string ends at a zero byte.
const std::string& token_bytes(const whisper_context& context, int32_t id);

// The id of exactly these bytes, -1 when there is none; and the length of the longest text token.
int32_t find_token(const whisper_context& context, std::string_view bytes);
size_t longest_token(const whisper_context& context);

int language_count(const whisper_context& context);

uint64_t memory_bytes(const whisper_context& context);
uint64_t memory_bytes(const whisper_state& state);

} // namespace voxgate::whisper_internals
