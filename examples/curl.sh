#!/bin/sh
# Transcription, words, a stream, speech and chat with curl 7.82 or newer: `sh curl.sh speech.mp3`.
# VOXGATE_URL is the gateway (http://127.0.0.1:8000), VOXGATE_API_KEY its key, if it wants one.
set -eu
url=${VOXGATE_URL:-http://127.0.0.1:8000}
audio=$1

# A busy gateway answers 503 with Retry-After: --retry waits that long and tries again. It also tries again after a
# 503 that would only repeat itself, which --retry-max-time bounds. --fail makes every error a failure of curl.
ask() {
  curl --silent --show-error --fail --retry 12 --retry-max-time 60 \
    --header "Authorization: Bearer ${VOXGATE_API_KEY:-none}" "$@"
}

# What can serve now. Speech and chat are listed only while their upstreams answer.
models=$(ask "$url/v1/models")
model_for() {
  echo "$models" | sed -n "s/.*\"id\":\"\([^\"]*\)\"[^}]*\"capabilities\":\[\"$1\"\].*/\1/p"
}

echo "text: $(ask "$url/v1/audio/transcriptions" --form "file=@$audio" --form response_format=text)"

echo "words: $(ask "$url/v1/audio/transcriptions" --form "file=@$audio" \
  --form response_format=verbose_json --form 'timestamp_granularities[]=word')"

# --no-buffer shows each event when it arrives.
ask --no-buffer "$url/v1/audio/transcriptions" --form "file=@$audio" --form stream=true

voice=$(model_for tts)
if [ -n "$voice" ]; then
  ask --output speech.wav "$url/v1/audio/speech" \
    --json "{\"model\": \"$voice\", \"voice\": \"alloy\", \"input\": \"Good morning.\"}"
  echo "speech: speech.wav"
fi

chat=$(model_for llm)
if [ -n "$chat" ]; then
  echo "chat: $(ask "$url/v1/chat/completions" \
    --json "{\"model\": \"$chat\", \"messages\": [{\"role\": \"user\", \"content\": \"Good morning.\"}]}")"
fi
