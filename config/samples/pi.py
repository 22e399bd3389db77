from openshift_ai_sdk.training import MPIJob
job = MPIJob("pi-from-python", "mpijob-demo", workers=4, image="odh/mpi-sample-openmpi:dev", command="pi", run_as_user=1000)
job.create()
job.wait_for_completion(timeout="5m")
print(job.get_logs())
