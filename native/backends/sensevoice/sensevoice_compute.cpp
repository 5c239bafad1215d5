#include "backends/sensevoice/sensevoice_compute.h"

#include "backends/backend_proc.h"
#include "backends/ggml_runtime.h"
#include "status.h"

namespace voxgate {
namespace {

// Counted as gpu_index counts.
ggml_backend_dev_t gpu(int index) {
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    const auto type = ggml_backend_dev_type(device);
    const bool is_gpu = type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
    if (is_gpu && index-- == 0)
      return device;
  }
  return nullptr;
}

ggml_backend_ptr start(ggml_backend_dev_t device) {
  ggml_backend_ptr backend(device != nullptr ? ggml_backend_dev_init(device, nullptr) : nullptr);
  if (!backend)
    throw Failure(StatusCode::load_failed, "The compute device could not be started");
  return backend;
}

} // namespace

GraphCompute::GraphCompute(const std::string& device, int threads, size_t max_nodes) {
  const int index = gpu_index(device);
  if (index >= 0)
    backends_.push_back(start(gpu(index)));
  backends_.push_back(start(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)));
  set_backend_threads(backends_.back().get(), threads);

  std::vector<ggml_backend_t> raw;
  raw.reserve(backends_.size());
  for (const auto& backend : backends_)
    raw.push_back(backend.get());
  scheduler_.reset(
      ggml_backend_sched_new(raw.data(), nullptr, static_cast<int>(raw.size()), max_nodes, false, false));
  if (!scheduler_)
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the model's working buffers");
}

ggml_backend_buffer_type_t GraphCompute::weight_buffer_type() const {
  return ggml_backend_get_default_buffer_type(backends_.front().get());
}

const SpeechOps* GraphCompute::cpu_ops() const {
  const auto get =
      backends_.size() == 1 ? backend_proc<GetSpeechOps>(backends_.front().get(), kGetSpeechOps) : nullptr;
  return get != nullptr ? get() : nullptr;
}

void GraphCompute::reserve(ggml_cgraph* largest) {
  if (!ggml_backend_sched_reserve(scheduler_.get(), largest))
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the model's working buffers");
}

void GraphCompute::place(ggml_cgraph* graph) {
  ggml_backend_sched_reset(scheduler_.get());
  if (!ggml_backend_sched_alloc_graph(scheduler_.get(), graph))
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the model's working buffers");
}

void GraphCompute::run(ggml_cgraph* graph, const CancelToken& cancel) {
  cancel.check();
  set_abort(&cancel);
  const auto status = ggml_backend_sched_graph_compute(scheduler_.get(), graph);
  set_abort(nullptr); // the token belongs to this call
  cancel.check();
  if (status == GGML_STATUS_ALLOC_FAILED)
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the model's working buffers");
  if (status != GGML_STATUS_SUCCESS)
    throw Failure(StatusCode::inference_failed,
                  std::string("Computing failed: ") + ggml_status_to_string(status));
}

void GraphCompute::set_abort(const CancelToken* cancel) {
  const auto should_abort = [](void* user) { return static_cast<const CancelToken*>(user)->cancelled(); };
  for (const auto& backend : backends_)
    set_backend_abort(backend.get(), cancel != nullptr ? +should_abort : nullptr,
                      const_cast<CancelToken*>(cancel));
}

uint64_t GraphCompute::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& backend : backends_)
    bytes += ggml_backend_sched_get_buffer_size(scheduler_.get(), backend.get());
  return bytes;
}

} // namespace voxgate
