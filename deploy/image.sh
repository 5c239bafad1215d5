#!/bin/sh
# The steps of the Dockerfiles:
# sh deploy/image.sh build-tools | build LEVEL FOLDER | run-time | vulkan-drivers
# They need Debian or Ubuntu with Node, and no container engine.
set -eu

install_packages() {
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
  rm -rf /var/lib/apt/lists/*
}

case "$1" in
build-tools)
  install_packages cmake g++ ninja-build patch
  ;;
build)
  npm run build -- --cpu="$2"
  # These packages are the sources and the tools of the addon. It is compiled now.
  npm uninstall --no-save --omit=dev cmake-js node-addon-api node-api-headers nodejs-whisper
  mkdir -p "$3/build"
  cp -a build/Release "$3/build/"
  cp -a assets dist node_modules package.json LICENSE THIRD-PARTY.md "$3/"
  ;;
run-time)
  # ffmpeg decodes m4a, mp4, webm and opus; ggml computes with libgomp; tini is process 1.
  install_packages ca-certificates ffmpeg libgomp1 tini
  # Weights, logs, crashes and uploads lie below one folder, so that everything else can be read-only.
  install -d -o 1000 -g 1000 /var/lib/voxgate
  ;;
vulkan-drivers)
  install_packages libvulkan1 mesa-vulkan-drivers
  ;;
*)
  echo "deploy/image.sh: unknown step $1" >&2
  exit 2
  ;;
esac
