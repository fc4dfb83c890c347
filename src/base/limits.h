// Every limit of the program, in one place, each with its reason. Nothing here is a tuning knob: a
// limit says where input stops being plausible, or how much of something may exist at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deltafin::limits {

// K3's largest safetensors header (896 experts x 6 tensors x ~150 bytes) is about 1 MB; the format
// itself stops at 100 MB.
inline constexpr uint64_t kSafetensorsHeaderBytes = 100'000'000;

// K3's index of 497,220 tensors is 60 MB; eight times that leaves room for any relative.
inline constexpr uint64_t kIndexBytes = 512ull << 20;

// The largest published config.json is 20 KB; tokenizer_config.json of K3 is 60 KB.
inline constexpr uint64_t kConfigBytes = 1ull << 20;

// The Kimi rank file is 2.8 MB.
inline constexpr uint64_t kRankFileBytes = 64ull << 20;

// Qwen3's tokenizer.json has 11 MB, that of the largest published vocabularies (256,000 tokens) 33.
inline constexpr uint64_t kTokenizerJsonBytes = 256ull << 20;

// The longest published spelling of a control token has 35 bytes. Finding them in a text takes as
// many steps a byte in the worst case.
inline constexpr size_t kControlTokenBytes = 256;

// No published model has more than 5 axes in a tensor.
inline constexpr size_t kTensorAxes = 8;

// Longest tensor name accepted; the release's longest is 80 bytes.
inline constexpr size_t kTensorNameBytes = 512;

// Sanity of a config: K3 has 93 layers, 896 experts, hidden 7168, vocabulary 163,840.
inline constexpr uint64_t kLayers = 4096;
inline constexpr uint64_t kExperts = 65536;
inline constexpr uint64_t kDimension = 1ull << 24;  // any single width
inline constexpr uint64_t kVocabulary = 1ull << 24;

// Tensors of one model. K3 has 497,220; the tables for sixteen times that are 200 MB.
inline constexpr uint64_t kTensors = 8'000'000;

// Parameters of one model. K3 has 2.8e12; below 2^50 every sum of byte sizes fits into 64 bits.
inline constexpr uint64_t kParameters = 1ull << 50;

// Nesting of a config file; the published ones reach 6.
inline constexpr int kJsonDepth = 32;

// Nesting of the JSON in a conversation: a schema takes two levels a property, and recursion must
// end.
inline constexpr int kChatJsonDepth = 128;

// Values in it: a prompt as ids fills K3's context, 2^20, and one value takes some fifty bytes of
// memory, for two of text.
inline constexpr size_t kChatJsonValues = 5u << 18;

// Stop strings of one request, and the size of one: OpenAI allows 4, others 16; all together become
// an automaton of so many nodes at most.
inline constexpr size_t kStops = 64;
inline constexpr size_t kStopBytes = 4096;

// Answers to one prompt (n), each of which is a sequence of its own.
inline constexpr uint64_t kAnswers = 8;

// Prompts of one request for completions: evaluations send a few dozen at a time.
inline constexpr size_t kPromptsOfRequest = 1024;

// Alternatives of one token that are reported (logprobs, top_logprobs), as in OpenAI's API.
inline constexpr uint64_t kTopLogprobs = 20;

// Log-probabilities of prompts in one answer (echo), alternatives and choices counted. Each takes
// some fifty bytes of memory and as many of JSON.
inline constexpr uint64_t kEchoedLogprobs = 2u << 20;

// `timeout` of a request, 30 days: what takes longer is not being waited for.
inline constexpr uint64_t kTimeoutSeconds = 30ull * 24 * 3600;

// Taps of a short convolution: published models have 4, and one would be no convolution.
inline constexpr uint64_t kConvTaps = 16;

// Positions of one sequence. K3 declares 1,048,576.
inline constexpr uint64_t kPositions = 1ull << 24;

// Rows of one sequence in a verify pass: its recurrent inputs are kept for replay (19.4 MB a row on
// K3), and no drafter proposes more.
inline constexpr size_t kVerifyRows = 64;

// Rows whose logits exist at a time while a prompt is scored: 42 MB of K3's.
inline constexpr size_t kScoredRows = 64;

// Text given on the command line or in a prompt file: 16 MiB is about four million tokens.
inline constexpr uint64_t kPromptBytes = 16ull << 20;

// What finding one piece of text with a regular expression may cost. Splitting for the tokenizer
// takes a few steps a character, and one piece may be the whole text; the interpreter keeps about
// 150 bytes a step it may have to come back to, which our patterns have none of that grow with it.
inline constexpr uint32_t kSplitSteps = 8 * kPromptBytes;
inline constexpr uint32_t kSplitHeapKib = 64 * 1024;

// Sequences that a plan holds memory for: more than any machine has for their state.
inline constexpr uint64_t kRequests = 1024;

// A request's line and headers. Browsers send the cookies of every port of localhost along; node
// accepts 16 KiB, Apache 8 KiB a line.
inline constexpr size_t kHttpHeaderBytes = 32 << 10;
inline constexpr size_t kHttpHeaders = 128;

// The longest prompt, half of it escaped.
inline constexpr size_t kHttpBodyBytes = 2 * kPromptBytes;

// What a larger body asks for takes milliseconds to understand, during which the thread of all
// connections would do nothing else.
inline constexpr size_t kHttpBodyBytesAtOnce = 16 << 10;

// Bodies that are being received or wait to be looked at, all together.
inline constexpr size_t kHttpBodyBytesOfAll = 4 * kHttpBodyBytes;

// A connection takes a descriptor, of which most systems allow 1,024, and the reader wants some.
inline constexpr size_t kHttpConnections = 256;

// Seconds. Headers come in one packet or two: who needs longer holds connections open on purpose.
inline constexpr int kHttpHeaderSeconds = 10;
// A body must bring kHttpBodyStep bytes in this time: 1 KiB/s, slower than a modem.
inline constexpr int kHttpBodySeconds = 16;
inline constexpr size_t kHttpBodyStep = 16 << 10;
// Browsers and HTTP libraries keep connections for a minute or two.
inline constexpr int kHttpIdleSeconds = 90;
// Something waits and the client takes not one byte of it.
inline constexpr int kHttpWriteSeconds = 30;
// A machine that answers no packet for so long is switched off or unplugged. WLAN comes back
// sooner.
inline constexpr int kHttpGoneSeconds = 30;
// After an error: for the client to read it, while what it still sends is thrown away.
inline constexpr int kHttpLingerSeconds = 2;

// More threads than this has never helped a memory-bound engine.
inline constexpr size_t kThreads = 256;

}  // namespace deltafin::limits
