#pragma once

#include "cancel.h"
#include "kernels/speech_ops.h"

#include <ggml-cpp.h>

#include <string>
#include <vector>

namespace voxgate {

// The devices that a graph runs on, a GPU before the CPU, and the scheduler that splits the graph over them.
// The scheduler keeps its working buffers from graph to graph.
class GraphCompute {
 public:
  // Throws Failure{load_failed} when the device is not there.
  GraphCompute(const std::string& device, int threads, size_t max_nodes);

  ggml_backend_buffer_type_t weight_buffer_type() const;
  // The operations of ours, where nothing but a CPU computes; else null.
  const SpeechOps* cpu_ops() const;
  // Working buffers for a graph as large as any that follows; throws Failure{out_of_memory}.
  void reserve(ggml_cgraph* largest);
  // Places the graph; its inputs can then be set. What was placed before is gone.
  void place(ggml_cgraph* graph);
  // Stops between two operations on a CPU, after the graph on a GPU; throws what CancelToken::check throws.
  void run(ggml_cgraph* graph, const CancelToken& cancel);

  uint64_t memory_bytes() const;

 private:
  void set_abort(const CancelToken* cancel);

  std::vector<ggml_backend_ptr> backends_; // outlive the scheduler
  ggml_backend_sched_ptr scheduler_;
};

} // namespace voxgate
