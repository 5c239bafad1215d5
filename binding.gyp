{
  # CMake is the build. This target is for tools that only know `node-gyp rebuild`.
  "targets": [
    {
      "target_name": "voxgate_cmake",
      "type": "none",
      "actions": [
        {
          "action_name": "build_native",
          "inputs": ["CMakeLists.txt"],
          "outputs": ["<(module_root_dir)/build/Release/voxgate.node"],
          "action": ["node", "<(module_root_dir)/scripts/build-native.mjs"]
        }
      ]
    }
  ]
}
