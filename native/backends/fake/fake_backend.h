#pragma once

#include "backend.h"

namespace voxgate {

// A scripted model for testing everything around a backend without weights. Its "weights" are a text file:
//
//   voxgate-fake 1              first line, always
//   load_delay_ms 200           sleep while loading
//   load_fail TEXT              fail to load with this message
//   language en 0.9             a language and how probable detect_language finds it; repeatable (else: en 1)
//   audio_context 1500          ModelInfo::audio_context
//
// and then what each transcribe does, in this order, again in every call (detect_language skips segments):
//
//   delay_ms 50                 sleep
//   ignore_cancel_ms 100        sleep without looking at the cancel token
//   segment 0 1500 Some text.   a segment of the result
//   touch PATH                  make an empty file, by which a test knows that the call has come here
//   fail TEXT                   throw inference_failed
//   crash HOW                   end the process: `assert` (one of ggml), `terminate` or `memory`
//
// A segment's words become its tokens, at even distances. Empty lines and lines starting with # are skipped.
// An unknown line is a load failure.
std::unique_ptr<Backend> load_fake(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate
