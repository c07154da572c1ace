"""Executes the PTX that Triton writes for sm_80 and sm_90 on a CPU. Entrances: `driver.chip`, and `launch.launch`."""
