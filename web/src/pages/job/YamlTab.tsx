import {Button, Switch} from '@patternfly/react-core';
import {type ReactElement, useState} from 'react';
import {type JobKey, useManifest} from '../../api/queries';
import type {Detail} from '../../api/types';
import {Code} from '../../components/Common';
import {Loaded} from '../../components/States';
import {DownloadIcon} from '../../lib/icons';
import {save} from '../../lib/save';

/** The YAML of the job, to read, to copy and to download. */
export default function YamlTab({job}: {job: JobKey; detail: Detail}): ReactElement {
  const manifest = useManifest(job);
  const [isFull, setFull] = useState(false);
  return (
    <Loaded query={manifest} what="The YAML cannot be shown">
      {(data) => {
        const text = isFull ? data.full : data.clean;
        return (
          <div className="mpi-stack mpi-yaml">
            <div className="mpi-actions">
              <Button variant="secondary" icon={<DownloadIcon />} onClick={() => save(`${job.name}.yaml`, text)}>
                Download
              </Button>
              {data.full ? <Switch label="With the fields of the cluster" isChecked={isFull} onChange={(_, on) => setFull(on)} /> : null}
            </div>
            <Code text={text} label={`YAML of ${job.name}`} />
          </div>
        );
      }}
    </Loaded>
  );
}
