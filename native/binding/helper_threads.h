#pragma once

namespace voxgate {

// Starts the helper threads of a model, or of a lane. Call it on the thread that will compute, before its
// first graph. Throws Failure{out_of_memory} where the system refuses them: libgomp would end the process. So
// all threads that the lanes of a model can have together have been there at once before a chunk needs them.
// Where the system refuses one later, because others took it meanwhile, the process ends.
void start_helper_threads(int threads);

} // namespace voxgate
