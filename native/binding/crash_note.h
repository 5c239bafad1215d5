#pragma once

#include <cstddef>
#include <string>

// What the process is doing now, as text in a file that is mapped into memory. The pages of a mapped file
// outlive the process, so the note can be read after any end of it, SIGKILL included, and noting costs no
// system call. src/crashes/crash-note.ts reads the note.
//
// The note has 32 cells of 256 bytes. Each holds a text that ends with a zero byte, or nothing (a zero byte
// first).
//
//   cells 0 to 3   how the process ended: "SIGNAL \t THREAD \t MESSAGE"; one text over the four cells
//   cell 4         the request that holds the slot, in words of the caller
//   cells 5 to 31  the native calls that run: "THREAD \t PLACE \t REQUEST"

namespace voxgate {

// Maps the file, which is made or overwritten, and from then on notes what runs. Handlers for SIGABRT,
// SIGSEGV, SIGBUS, SIGFPE, SIGILL and std::terminate note how the process ends; it then ends by the same
// signal as without them. Throws Failure{load_failed}.
void open_crash_note(const std::string& path);

// Notes the request that holds the slot; empty for none. A text that is too long for a cell is cut.
void note_holder(const std::string& text);

// Notes a native call for as long as the object lives. Without an open note, or with too many calls at once,
// the call is not noted.
class RunningCall {
 public:
  RunningCall(const char* place, const char* request) noexcept;
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
  ~RunningCall();

 private:
  size_t index_ = 0;
  char* cell_ = nullptr;
};

} // namespace voxgate
