#include "binding/crash_note.h"

#include "backends/ggml_runtime.h"
#include "status.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#ifdef __linux__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace voxgate {

#ifdef __linux__

namespace {

constexpr size_t kCell = 256;
constexpr size_t kCells = 32;
constexpr size_t kEndingBytes = 4 * kCell;
constexpr size_t kHolderCell = 4;
constexpr size_t kFirstCall = 5;

struct Fatal {
  int signal;
  const char* name;
};
constexpr std::array<Fatal, 5> kFatal{
    {{SIGABRT, "SIGABRT"}, {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}}};

std::atomic<char*> g_note{nullptr};
std::array<std::atomic<bool>, kCells> g_taken{};
std::array<struct sigaction, kFatal.size()> g_previous{};
std::atomic<long> g_dying_thread{0};
// Why abort() is about to be called. The handler of SIGABRT copies it.
std::array<char, kEndingBytes / 2> g_reason{};

long this_thread() {
  return syscall(SYS_gettid);
}

// A text under construction. Only what a signal handler may do is used (POSIX, signal-safety(7)).
class Text {
 public:
  Text(char* to, size_t size) : to_(to), size_(size) {}

  Text& add(const char* text) {
    while (*text != '\0' && length_ + 1 < size_)
      to_[length_++] = *text++;
    to_[length_] = '\0';
    return *this;
  }

  Text& add(long number) {
    std::array<char, 24> digits{};
    size_t at = digits.size() - 1;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0 && at > 0);
    return add(&digits[at]);
  }

 private:
  char* to_;
  size_t size_;
  size_t length_ = 0;
};

// The first byte is written last, so that a reader sees the whole text or none.
void fill_cell(char* cell, const char* text) {
  const size_t length = strnlen(text, kCell - 1);
  if (length == 0)
    return;
  std::memcpy(cell + 1, text + 1, length - 1);
  cell[length] = '\0';
  std::atomic_signal_fence(std::memory_order_release);
  *static_cast<volatile char*>(cell) = text[0];
}

void empty_cell(char* cell) {
  *static_cast<volatile char*>(cell) = '\0';
  std::atomic_signal_fence(std::memory_order_release);
}

void end_by(int signal) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  raise(signal); // it is blocked while its handler runs, and ends the process when the handler returns
}

void on_fatal(int signal, siginfo_t* info, void* context);

// True when the handler that was there before has dealt with the signal. V8's does so for WebAssembly that
// leaves its memory. Otherwise Node's handler restores the default action and raises the signal again.
bool previous_handles(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0)
    previous.sa_sigaction(signal, info, context);
  else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    previous.sa_handler(signal);
  else
    return false;
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_sigaction == on_fatal;
}

void on_fatal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  size_t which = 0;
  while (which + 1 < kFatal.size() && kFatal[which].signal != signal)
    ++which;
  if (previous_handles(g_previous[which], signal, info, context)) {
    errno = error;
    return;
  }
  const long thread = this_thread();
  long none = 0;
  if (!g_dying_thread.compare_exchange_strong(none, thread)) {
    if (none == thread)
      end_by(signal); // this handler itself has failed
    else
      pause(); // another thread is ending the process
    return;
  }
  if (char* note = g_note.load())
    Text(note, kEndingBytes).add(kFatal[which].name).add("\t").add(thread).add("\t").add(g_reason.data());
  end_by(signal);
}

// ggml calls this before it aborts, in place of printing the message and starting a debugger for the stack.
void on_ggml_abort(const char* message) {
  Text(g_reason.data(), g_reason.size()).add(message);
  static_cast<void>(std::fprintf(stderr, "%s\n", message));
}

[[noreturn]] void on_terminate() {
  Text text(g_reason.data(), g_reason.size());
  text.add("std::terminate");
  if (const auto current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& error) {
      text.add(": ").add(error.what());
    } catch (...) {
      text.add(": an exception of another type");
    }
  }
  static_cast<void>(std::fprintf(stderr, "%s\n", g_reason.data()));
  std::abort();
}

void install_handlers() {
  std::set_terminate(on_terminate);
  set_abort_sink(on_ggml_abort);
  for (size_t i = 0; i < kFatal.size(); ++i) {
    struct sigaction ours {};
    ours.sa_sigaction = on_fatal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(kFatal[i].signal, &ours, &g_previous[i]);
  }
}

} // namespace

void open_crash_note(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (file < 0)
    throw Failure(StatusCode::load_failed, "Cannot open " + path + ": " + std::strerror(errno));
  // The blocks are reserved now, because a page without a block on a full disk is a SIGBUS.
  const int refused = posix_fallocate(file, 0, kCells * kCell);
  void* mapped =
      refused != 0 ? MAP_FAILED : mmap(nullptr, kCells * kCell, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = refused != 0 ? refused : errno;
  close(file);
  if (mapped == MAP_FAILED)
    throw Failure(StatusCode::load_failed, "Cannot map " + path + ": " + std::strerror(error));
  g_note = static_cast<char*>(mapped); // an older note stays mapped, because a call may still be noted in it
  static std::once_flag once;
  std::call_once(once, install_handlers);
}

void note_holder(const std::string& text) {
  char* note = g_note.load();
  if (note == nullptr)
    return;
  char* cell = note + kHolderCell * kCell;
  empty_cell(cell);
  fill_cell(cell, text.c_str());
}

RunningCall::RunningCall(const char* place, const char* request) noexcept {
  char* note = g_note.load();
  if (note == nullptr)
    return;
  for (size_t i = kFirstCall; i < kCells; ++i) {
    if (g_taken[i].exchange(true))
      continue;
    index_ = i;
    cell_ = note + i * kCell;
    std::array<char, kCell> text{};
    Text(text.data(), text.size()).add(this_thread()).add("\t").add(place).add("\t").add(request);
    fill_cell(cell_, text.data());
    return;
  }
}

RunningCall::~RunningCall() {
  if (cell_ == nullptr)
    return;
  empty_cell(cell_);
  g_taken[index_] = false;
}

#else

void open_crash_note(const std::string&) {
  throw Failure(StatusCode::load_failed, "Crashes are noted on Linux only");
}
void note_holder(const std::string&) {}
RunningCall::RunningCall(const char*, const char*) noexcept {}
RunningCall::~RunningCall() = default;

#endif

} // namespace voxgate
