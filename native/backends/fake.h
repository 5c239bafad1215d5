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
//   delay_ms 50                 \
//   segment 0 1500 Some text.    |  what each transcribe does, in this order, again in every call;
//   progress 0.5                 |  detect_language does only the delays and failures
//   fail TEXT                    |
//   ignore_cancel_ms 100        /   sleep without looking at the cancel token
//
// A segment's words become its tokens, at even distances. Empty lines and lines starting with # are skipped; "\n"
// in a text stays as it is. An unknown line is a load failure.
std::unique_ptr<Backend> load_fake(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate
