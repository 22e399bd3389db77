package diagnose

// packageOf are the packages of Python that contain modules of another name, as pip calls them.
var packageOf = map[string]string{
	"attr": "attrs", "bs4": "beautifulsoup4", "Crypto": "pycryptodome", "cv2": "opencv-python-headless", "dateutil": "python-dateutil", "dotenv": "python-dotenv", "git": "GitPython",
	"google": "protobuf or one of google-*", "hydra": "hydra-core", "igraph": "python-igraph", "MySQLdb": "mysqlclient", "osgeo": "GDAL", "PIL": "Pillow", "psycopg2": "psycopg2-binary", "ruamel": "ruamel.yaml",
	"serial": "pyserial", "skimage": "scikit-image", "sklearn": "scikit-learn", "yaml": "PyYAML", "zmq": "pyzmq",
}
