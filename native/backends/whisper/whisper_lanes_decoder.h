#pragma once

// Computes the steps of several lanes in one graph. whisper_internals.cpp includes this behind whisper.cpp,
// whose structs it reads.

namespace voxgate::whisper_internals {

// Computes the graphs of a StepBatcher. One thread at a time is in it.
class LanesDecoder {
 public:
  explicit LanesDecoder(const whisper_context& context)
      : backends_(whisper_backend_init(context.params)),
        scheduler_(ggml_backend_sched_new(backends_.data(), nullptr, static_cast<int>(backends_.size()),
                                          kMostNodesOfLanes, false, true)),
        meta_(ggml_tensor_overhead() * kMostNodesOfLanes +
              ggml_graph_overhead_custom(kMostNodesOfLanes, false)) {}
  LanesDecoder(const LanesDecoder&) = delete;
  LanesDecoder& operator=(const LanesDecoder&) = delete;
  ~LanesDecoder() {
    ggml_backend_sched_free(scheduler_);
    for (ggml_backend_t backend : backends_)
      ggml_backend_free(backend);
  }

  bool compute(std::span<const StepBatcher::Lane> of) {
    std::vector<StepLane> lanes;
    for (const auto& lane : of)
      lanes.push_back(step_lane(*lane.state));
    // What throws or jumps out of here leaves no graph.
    auto* graph = std::exchange(graph_, nullptr);
    if (graph == nullptr || lanes != lanes_) {
      ggml_backend_sched_reset(scheduler_);
      lanes_ = std::move(lanes);
      graph = build(*of.front().context, *of.front().state);
      if (!ggml_backend_sched_alloc_graph(scheduler_, graph))
        return false;
    }
    fill(graph, of);
    int threads = 0;
    for (const auto& lane : of)
      threads += lane.state->call->threads();
    for (ggml_backend_t backend : backends_)
      set_backend_threads(backend, threads);
    if (ggml_backend_sched_graph_compute(scheduler_, graph) != GGML_STATUS_SUCCESS)
      return false;
    const auto* logits = ggml_graph_node(graph, -1);
    for (size_t i = 0; i < of.size(); ++i) {
      auto& values = of[i].state->logits;
      values.resize(static_cast<size_t>(logits->ne[0]));
      ggml_backend_tensor_get(logits, values.data(), i * logits->nb[1], logits->nb[1]);
    }
    graph_ = graph;
    return true;
  }

 private:
  static StepLane step_lane(const whisper_state& state) {
    const auto& texts = state.kv_self;
    const auto& audio = state.kv_cross;
    const auto& window = state.call->window();
    return {.text_keys = texts.k,
            .text_values = texts.v,
            .audio_keys = audio.k,
            .audio_values = audio.v,
            .text_data = texts.k->data,
            .audio_data = audio.k->data,
            .size = texts.size,
            .rows = texts.n,
            .positions = window.positions,
            .is_sparse = window.is_sparse()};
  }

  // `state` is that of a lane, whose thread waits for the graph. It gives what the graph has of no lane.
  ggml_cgraph* build(whisper_context& context, whisper_state& state) {
    struct Borrowed {
      whisper_state& state;
      std::vector<uint8_t>& meta;
      Borrowed(whisper_state& of, std::vector<uint8_t>& memory, std::span<const StepLane> lanes)
          : state(of), meta(memory) {
        state.lanes = lanes;
        std::swap(state.sched_decode.meta, meta);
      }
      ~Borrowed() {
        state.lanes = {};
        std::swap(state.sched_decode.meta, meta);
      }
    };
    const Borrowed borrowed(state, meta_, lanes_);
    std::vector<int8_t> wanted(lanes_.size(), 1);
    whisper_batch batch{};
    batch.n_tokens = static_cast<int32_t>(lanes_.size());
    batch.logits = wanted.data();
    return whisper_build_graph_decoder(context, state, batch, false, false);
  }

  void fill(ggml_cgraph* graph, std::span<const StepBatcher::Lane> of) {
    std::vector<int32_t> tokens, positions;
    std::vector<StepInputs> inputs;
    for (size_t i = 0; i < of.size(); ++i) {
      const auto& state = *of[i].state;
      const auto& cache = state.kv_self;
      const auto& window = state.call->window();
      tokens.push_back(state.batch.token[0]);
      positions.push_back(state.batch.pos[0]);
      auto& input = inputs.emplace_back();
      input.row = cache.head;
      for (uint32_t cell = 0; cell < cache.n; ++cell)
        input.text_mask.push_back(ggml_fp32_to_fp16(cache.cells[cell].has_seq_id(0) ? 0 : -INFINITY));
      if (window.is_sparse())
        input.audio_offsets = score_offsets(window, {0, window.dense}, static_cast<size_t>(window.positions));
    }
    const auto set = [&](const char* name, const std::vector<int32_t>& values) {
      auto* tensor = ggml_graph_get_tensor(graph, name);
      ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
    };
    set("embd", tokens);
    set("position", positions);
    fill_inputs(graph, lanes_, inputs);
  }

  std::vector<ggml_backend_t> backends_;
  ggml_backend_sched_t scheduler_;
  std::vector<uint8_t> meta_; // describes the graph
  std::vector<StepLane> lanes_;
  ggml_cgraph* graph_ = nullptr; // null where there is none
};

} // namespace voxgate::whisper_internals
