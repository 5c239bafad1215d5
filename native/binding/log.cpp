#include "binding/log.h"

#include <mutex>
#include <vector>

namespace voxgate {
namespace {

std::mutex g_mutex; // held also while posting, so that no listener can end meanwhile
// Not a set, whose code in the library of C++ is hidden from ThreadSanitizer.
std::vector<LogListener*> g_listeners;

void write_lines(LogLevel level, const char* text) {
  static thread_local std::string line; // the libraries write lines in parts
  line += text;
  size_t begin = 0;
  for (size_t end = line.find('\n'); end != std::string::npos; end = line.find('\n', begin)) {
    if (end > begin) {
      const std::lock_guard lock(g_mutex);
      for (LogListener* listener : g_listeners)
        listener->post_log(level, line.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  line.erase(0, begin);
}

} // namespace

void write_log(LogLevel level, const char* text) {
  try {
    write_lines(level, text);
  } catch (...) { // C code calls this, so a line without memory is lost
  }
}

void subscribe_to_log(LogListener& listener, bool wanted) {
  const std::lock_guard lock(g_mutex);
  std::erase(g_listeners, &listener);
  if (wanted)
    g_listeners.push_back(&listener);
}

} // namespace voxgate
